"""Helpers of the optimizers, apart from the algorithms: priors, memories, widths, schedules.

Nothing in here is an optimizer to be named in a scenario. The kinds of parts (widths, lengths,
schedules, routings) are, and each can be extended by a plug-in.
"""
