"""The finding: what a study shows, in a sentence, and how sure that is, in a few more."""

from __future__ import annotations

from sparq_sim.report.finding.tell import Finding, tell_finding

__all__ = ["Finding", "tell_finding"]
