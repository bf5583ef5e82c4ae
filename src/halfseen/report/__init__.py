"""What a person looks at: one HTML page, and figures."""

from halfseen.report.content import report_content
from halfseen.report.group_page import write_group_report
from halfseen.report.html_page import write_report
from halfseen.report.plots import GroupPlots, Plots
from halfseen.report.regression_content import regression_content
from halfseen.report.regression_page import write_regression_report
from halfseen.report.regression_plots import RegressionPlots

__all__ = [
    "GroupPlots",
    "Plots",
    "RegressionPlots",
    "regression_content",
    "report_content",
    "write_group_report",
    "write_regression_report",
    "write_report",
]
