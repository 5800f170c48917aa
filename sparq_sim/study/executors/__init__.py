"""Executors: where plays are computed. In this process, in others, or on a Dask cluster."""

from sparq_sim.study.executors.dask import Dask
from sparq_sim.study.executors.in_process import InProcess
from sparq_sim.study.executors.limit import LIMIT
from sparq_sim.study.executors.pooled import Pooled
from sparq_sim.study.executors.processes import Processes
from sparq_sim.study.executors.protocol import (
    Batch,
    ExecutorError,
    Outcome,
    Outcomes,
    PlayExecutor,
    Step,
    Task,
    Work,
)
from sparq_sim.study.executors.signals import Terminated, catch_sigterm

__all__ = [
    "LIMIT",
    "Batch",
    "Dask",
    "ExecutorError",
    "InProcess",
    "Outcome",
    "Outcomes",
    "PlayExecutor",
    "Pooled",
    "Processes",
    "Step",
    "Task",
    "Terminated",
    "Work",
    "catch_sigterm",
]
