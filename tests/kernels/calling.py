"""Calls, from Python, of kernels that only other kernels call."""

from functools import cache

from halfseen.kernels import KERNEL, njit


@cache
def called(kernel):
    """A kernel that hands what it gets to another, and has a way in."""

    @njit(**{**KERNEL, "cache": False})
    def call(*given):
        return kernel(*given)

    return call
