"""A cluster of two real processes, for the tests that need one."""

import contextlib

import pytest


class TwoWorkers:
    """A cluster of two processes, made anew when one of them is gone for good.

    A nanny that is starting a worker as it is killed may give it up.
    """

    def __init__(self):
        self.client = None

    def ready(self):
        if self.client is not None:
            try:
                self.client.wait_for_workers(2, timeout=30)
            except TimeoutError:
                self.close()
        if self.client is None:
            import distributed

            self.cluster = distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
            )
            self.client = distributed.Client(self.cluster)
        return self.client

    def close(self):
        client, self.client = self.client, None
        client.close()
        # A cluster that lost a worker in the middle of its start may stumble over it, or wait for ever.
        with contextlib.suppress(KeyError, TimeoutError):
            self.cluster.close(timeout=60)


@pytest.fixture(scope="module")
def cluster_of_two():
    two = TwoWorkers()
    yield two
    if two.client is not None:
        two.close()


@pytest.fixture
def two_workers(cluster_of_two):
    """A client of two workers, both alive: an earlier test may have killed one."""
    return cluster_of_two.ready()
