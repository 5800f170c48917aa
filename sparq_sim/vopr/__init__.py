"""Self-test by simulation: random plays, held against every law there is."""

from sparq_sim.vopr.case import Case
from sparq_sim.vopr.check import Checked, check_case
from sparq_sim.vopr.run import Failed, Tested, run_vopr
from sparq_sim.vopr.shrink import shrink

__all__ = ["Case", "Checked", "Failed", "Tested", "check_case", "run_vopr", "shrink"]
