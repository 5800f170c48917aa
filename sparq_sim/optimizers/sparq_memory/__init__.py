"""SparQ with memory: answers are kept, drift is learnt, and only queries that pay are asked."""

from sparq_sim.optimizers.sparq_memory.optimizer import SparQMemory

__all__ = ["SparQMemory"]
