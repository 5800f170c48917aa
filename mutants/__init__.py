"""Mutants: small mistakes planted in the core, one at a time, to see whether its tests notice.

    python -m mutants --sample 150 --seed 0

Kept tools were tried first. mutmut 3 leaves out functions with decorators (here all properties,
validators and waits of clocks) and what stands in the body of a class (here all defaults of
models), and changes the text of whole files, which this project fingerprints. cosmic-ray edits
the checkout itself, and runs the same tests for every mutant.
"""
