"""What a person looks at: one HTML page, and figures."""

from halfseen.report.content import report_content
from halfseen.report.html_page import write_report
from halfseen.report.plots import Plots

__all__ = ["Plots", "report_content", "write_report"]
