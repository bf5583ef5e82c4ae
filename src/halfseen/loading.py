"""``load``: saved fits of any kind, read again."""

from __future__ import annotations

import os

from halfseen.archive import ArchiveError, read_any_archive
from halfseen.errors import InputError
from halfseen.regression import saving as regressions
from halfseen.regression.fit import RegressionFit
from halfseen.results import Fit, as_fit
from halfseen.solvers import saving as fits


def load(path: str | os.PathLike[str]) -> Fit | RegressionFit:
    """Read a fit that ``Fit.save`` or ``RegressionFit.save`` wrote; the file says which.

    What was learned comes back to the last bit, with the rule of the table where it can be written. The
    table does not: what needs one must be given it. A file can be loaded whoever made it: nothing in
    it is run, and sizes are checked before memory is taken.

    Parameters
    ----------
    path : path of a file that ``save`` wrote

    Returns
    -------
    Fit or RegressionFit

    Raises
    ------
    InputError
        The file is not there, is damaged, is something else, or was written by a newer halfseen.

    Examples
    --------
    >>> import tempfile, halfseen as hs
    >>> rule = hs.DetectionLimits(lower=0.0)
    >>> X = hs.simulate(hs.Gaussian([1.0, 0.5], [[1.0, 0.6], [0.6, 1.0]]), rule, 500)
    >>> fit = hs.fit(X, rule, names=["lead", "zinc"], random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fit.save(f"{folder}/metals.hsfit")
    ...     again = hs.load(f"{folder}/metals.hsfit")
    >>> again.gaussian == fit.gaussian, again.summary() == fit.summary()
    (True, True)
    >>> bool((again.impute(X) == fit.impute(X)).all())
    True
    """
    known = {fits.FORMAT: fits.VERSION, regressions.FORMAT: regressions.VERSION}
    with read_any_archive(path, known) as archive:
        try:
            if archive.format == regressions.FORMAT:
                return RegressionFit(**regressions.read_regression(archive))
            return as_fit(fits.read_fit(archive))
        except ArchiveError:
            raise
        except InputError as error:
            raise ArchiveError(f"{archive.path} is not a saved fit: {error}") from None
