"""The executor that plays on a Dask cluster."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from typing import Any

from sparq_sim.study.executors.pooled import Pooled
from sparq_sim.study.executors.processes import count_cores
from sparq_sim.study.executors.protocol import ExecutorError, Outcome, Outcomes, Work
from sparq_sim.study.executors.signals import start_tracker

__all__ = ["Dask"]

_TRIES = 3
"""How often a local cluster is tried to start."""


class Dask:
    """Plays on a Dask cluster, or on a local one made for it.

    Workers write to the study's folder where they see it, and send their files home elsewhere.
    """

    def __init__(self, address: str | None = None, *, jobs: int | None = None) -> None:
        """Choose the cluster.

        Args:
            address: Where its scheduler is, tcp://host:port; by default, a local cluster is made.
            jobs: How many workers a local cluster has; by default, one a core.
        """
        self.address = address
        self.jobs = jobs

    def outcomes(self, work: Work) -> Outcomes:
        """Compute all plays.

        Args:
            work: What to compute.

        Yields:
            The outcome of each play, as soon as it is known.

        Raises:
            ExecutorError: Dask is not installed, no local cluster can be started, or none answers.
        """
        try:
            dask: Any = import_module("distributed")
        except ImportError as error:
            raise ExecutorError(
                "the executor dask needs the extra `dask`: pip install 'sparq-sim[dask]'"
            ) from error
        if self.address is None:
            start_tracker()
            with (
                _without_tracebacks(),
                _start_cluster(dask, self.jobs or count_cores()) as cluster,
                dask.Client(cluster) as client,
            ):
                yield from self._on(client, work)
        else:
            try:
                client = dask.Client(self.address, timeout="10s")
            except (OSError, ValueError) as error:
                raise ExecutorError(
                    f"no Dask cluster answers at {self.address}: {error}"
                ) from error
            with _without_tracebacks(), client:
                yield from self._on(client, work)

    def _on(self, client: Any, work: Work) -> Iterator[Outcome]:
        threads = sum(client.nthreads().values())
        executor = client.get_executor(pure=False)
        yield from Pooled(executor, workers=max(1, threads)).outcomes(work)


def _start_cluster(dask: Any, jobs: int) -> Any:
    """Start a local cluster; try again where a worker is killed before it has begun."""
    tries = count(1)
    while True:
        try:
            return dask.LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,  # Of workers that are killed, too.
            )
        except (RuntimeError, OSError) as error:
            if next(tries) == _TRIES:
                raise ExecutorError(
                    f"Dask's local cluster, with --jobs {jobs}, does not start: {error}; lower "
                    "--jobs, or use the executor processes"
                ) from error


@contextmanager
def _without_tracebacks() -> Iterator[None]:
    """Have Dask log no tracebacks: of what it cannot do, this executor tells what to do.

    It logs one for each connection that is lost with its scheduler.
    """
    handlers = [
        handler
        for name in ("distributed", *logging.root.manager.loggerDict)
        if name.partition(".")[0] == "distributed"
        for handler in logging.getLogger(name).handlers
    ]
    for handler in handlers:
        handler.addFilter(_has_no_traceback)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(_has_no_traceback)


def _has_no_traceback(record: logging.LogRecord) -> bool:
    return record.exc_info is None and "Traceback" not in record.getMessage()
