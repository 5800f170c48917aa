"""`python -m sparq_sim` is `sparq-sim`."""

from sparq_sim.cli.main import main

main()
