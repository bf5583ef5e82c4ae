"""Files in the layouts of NADA, NADA2, EnvStats, ProUCL, laboratories, R, pandas and spreadsheets.

Each is read to the table that it means, or refused with the sentence that leads there; none is read to
another in silence. The values are made up.
"""

import ast
import io
import re
import warnings
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import halfseen as hs
from halfseen.data.csv_files import to_cells
from halfseen.errors import told_in_options

# What all of the first files mean.
LEAD = {"Pb": ["<0.05", "0.31", "<0.1", "0.72"]}
BOTH = {**LEAD, "Zn": ["12", "<5", "7.5", "9"]}


class Layout(NamedTuple):
    """A file, how it is read, and what comes out: columns of cells, or the sentence that refuses it."""

    text: str
    expected: dict[str, list[str]] | str
    options: Mapping[str, Any] = MappingProxyType({})
    labels: tuple[str, ...] | None = None
    warning: str = ""


FLAGS = "flags are read by the names"
ROWS = ("1", "2", "3", "4")
LAYOUTS = {
    # NADA and NADA2: the limit in the column of values, and 0/1 or TRUE/FALSE beside it.
    "NADA, 0 and 1": Layout(
        "Pb,PbCen\n0.05,1\n0.31,0\n0.1,1\n0.72,0\n", LEAD, warning="1 in PbCen marks values of Pb"
    ),
    "NADA, TRUE and FALSE": Layout("Pb,PbCen\n0.05,TRUE\n0.31,FALSE\n0.1,TRUE\n0.72,FALSE\n", LEAD),
    "NADA, two metals": Layout(
        "Pb,PbCen,Zn,ZnCen\n0.05,1,12,0\n0.31,0,5,1\n0.1,1,7.5,0\n0.72,0,9,0\n", BOTH, warning=FLAGS
    ),
    "NADA, Conc and Cen": Layout(
        "PbConc,PbCen\n0.05,TRUE\n0.31,FALSE\n0.1,TRUE\n0.72,FALSE\n", {"PbConc": LEAD["Pb"]}
    ),
    "NADA, told outright": Layout(
        "Pb,PbCen\n0.05,1\n0.31,0\n0.1,1\n0.72,0\n", LEAD, {"flags": {"*": "*Cen"}}
    ),
    "NADA2, PbCens": Layout(
        "Pb,PbCens\n0.05,1\n0.31,0\n0.1,1\n0.72,0\n", LEAD, warning="1 in PbCens marks"
    ),
    "NADA2, PbND": Layout(
        "Pb,PbND\n0.05,1\n0.31,0\n0.1,1\n0.72,0\n", LEAD, warning="1 in PbND marks"
    ),
    "NADA2, capitals": Layout(
        "PB,PBCEN\n0.05,1\n0.31,0\n0.1,1\n0.72,0\n", {"PB": LEAD["Pb"]}, warning="1 in PBCEN marks"
    ),
    "NADA2, another name": Layout(
        "Lindane,LinCen\n0.05,1\n0.31,0\n0.1,1\n0.72,0\n",
        "LinCen holds flags such as '1', but there is no column Lin: say of which with "
        "flags={'Lindane': 'LinCen'}",
    ),
    "NADA2, another name, told": Layout(
        "Lindane,LinCen\n0.05,1\n0.31,0\n0.1,1\n0.72,0\n",
        {"Lindane": LEAD["Pb"]},
        {"flags": {"Lindane": "LinCen"}},
    ),
    "NADA2, the wrong way round": Layout(
        "Pb,PbCen\n0.05,0\n0.31,1\n0.1,0\n0.72,1\n0.05,0\n0.44,1\n0.05,0\n0.53,1\n",
        "If 0 marks what was not detected, say flags={'Pb': 'PbCen:0'}; else flags={'Pb': 'PbCen:1'}",
    ),
    "NADA2, the wrong way round, told": Layout(
        "Pb,PbCen\n0.05,0\n0.31,1\n0.1,0\n0.72,1\n", LEAD, {"flags": {"Pb": "PbCen:0"}}
    ),
    "NADA2, intervals": Layout(
        "Pb_lo,Pb_hi\n0,0.05\n0.31,0.31\n0,0.1\n0.72,0.72\n",
        {"Pb": ["0..0.05", "0.31", "0..0.1", "0.72"]},
    ),
    # EnvStats: a logical named Censored beside the only column of values.
    "EnvStats, Censored": Layout(
        "Pb.ug.L,Censored\n0.05,TRUE\n0.31,FALSE\n0.1,TRUE\n0.72,FALSE\n", {"Pb.ug.L": LEAD["Pb"]}
    ),
    "EnvStats, with the text of the sheet": Layout(
        "Orig,Pb,Censored\n<0.05,0.05,TRUE\n0.31,0.31,FALSE\n<0.1,0.1,TRUE\n0.72,0.72,FALSE\n",
        "column Censored holds flags such as 'TRUE', but its name does not say of which column: say of "
        "which with flags={'Orig': 'Censored'} or flags={'Pb': 'Censored'}",
    ),
    "EnvStats, with the text of the sheet, told of the text": Layout(
        "Orig,Pb,Censored\n<0.05,0.05,TRUE\n0.31,0.31,FALSE\n<0.1,0.1,TRUE\n0.72,0.72,FALSE\n",
        "columns Orig and Pb hold the same numbers, and Orig says which of them were not detected. "
        "Leave the other one out: exclude='Pb'",
        {"flags": {"Orig": "Censored"}},
    ),
    "EnvStats, with the text of the sheet, told of both": Layout(
        "Orig,Pb,Censored\n<0.05,0.05,TRUE\n0.31,0.31,FALSE\n<0.1,0.1,TRUE\n0.72,0.72,FALSE\n",
        LEAD,
        {"flags": {"Pb": "Censored"}, "exclude": "Orig"},
    ),
    "EnvStats, a limit by sample": Layout(
        "Pb,Censored,Detection.Limit\n0.025,TRUE,0.05\n0.31,FALSE,0.05\n0.05,TRUE,0.1\n0.72,FALSE,0.1\n",
        LEAD,
        {"limits": {"Pb": "Detection.Limit"}},
    ),
    # ProUCL: D_X is 1 where X was detected.
    "ProUCL": Layout(
        "Pb,D_Pb\n0.05,0\n0.31,1\n0.1,0\n0.72,1\n", LEAD, warning="0 in D_Pb marks values of Pb"
    ),
    "ProUCL, two metals": Layout(
        "Pb,D_Pb,Zn,d_Zn\n0.05,0,12,1\n0.31,1,5,0\n0.1,0,7.5,1\n0.72,1,9,1\n",
        BOTH,
        warning="0 in d_Zn",
    ),
    "ProUCL, tabs": Layout("Pb\tD_Pb\n0.05\t0\n0.31\t1\n0.1\t0\n0.72\t1\n", LEAD, warning=FLAGS),
    "ProUCL, told": Layout(
        "Pb,D_Pb\n0.05,0\n0.31,1\n0.1,0\n0.72,1\n", LEAD, {"flags": {"Pb": "D_Pb:0"}}
    ),
    "ProUCL, the wrong way round": Layout(
        "Pb,D_Pb\n0.05,1\n0.31,0\n0.1,1\n0.72,0\n0.05,1\n0.44,0\n0.05,1\n0.53,0\n",
        "flags={'Pb': 'D_Pb:1'}; else flags={'Pb': 'D_Pb:0'}",
    ),
    "ProUCL, the wrong way round beside limits": Layout(
        "Pb,D_Pb,Pb_RL\n,1,0.05\n0.31,0,0.05\n0.05,1,0.1\n0.72,0,0.1\n",
        "but then 2 of 2 cells that were not detected lie above their limits. If 1 marks what was not "
        "detected, say flags={'Pb': 'D_Pb:1'}",
    ),
    # Exports of laboratories: qualifiers, limits in columns of their own.
    "LIMS, qualifiers": Layout("Pb,Pb_qual\n0.05,U\n0.31,\n0.1,<\n0.72,=\n", LEAD),
    "LIMS, estimated": Layout(
        "Pb,PbQual\n0.05,UJ\n0.31,J\n0.1,U\n0.72,\n", LEAD, warning="J marks estimated values"
    ),
    "LIMS, ND and BDL": Layout("Pb,Pb.flag\n0.05,ND\n0.31,\n0.1,BDL\n0.72,\n", LEAD),
    "LIMS, result and qualifier": Layout(
        "Pb_result,Pb_qualifier\n0.05,U\n0.31,\n0.1,U\n0.72,\n", {"Pb_result": LEAD["Pb"]}
    ),
    "LIMS, an unknown qualifier": Layout(
        "Pb,Pb_qual\n0.05,U\n0.31,\n0.1,K\n0.72,\n",
        "if it marks what was not detected, say so with the others that do, as in "
        "flags={'Pb': 'Pb_qual:U|K'}; if not, flags={'Pb': 'Pb_qual:U'}",
    ),
    "LIMS, an unknown qualifier, told": Layout(
        "Pb,Pb_qual\n0.05,U\n0.31,B\n0.1,K\n0.72,\n", LEAD, {"flags": {"Pb": "Pb_qual:U|K"}}
    ),
    "LIMS, flags of 1 that say nothing": Layout(
        "Pb,Pb_flag\n0.05,1\n0.31,0\n0.1,1\n0.72,0\n",
        "if 1 marks what was not detected, say flags={'Pb': 'Pb_flag:1'}",
    ),
    "LIMS, blank with flag and limit": Layout(
        "Pb,Pb_qual,Pb_RL\n,U,0.05\n0.31,,0.05\n,U,0.1\n0.72,,0.1\n", LEAD
    ),
    "LIMS, bdl beside half the limit": Layout(
        "Pb,Pb_bdl,Pb_LOD\n0.025,1,0.05\n0.31,0,0.05\n0.05,1,0.1\n0.72,0,0.1\n",
        LEAD,
        warning="Pb_bdl",
    ),
    "LIMS, over root two": Layout(
        "Pb,Pb_bdl,Pb_LOD\n0.0354,1,0.05\n0.31,0,0.05\n0.0707,1,0.1\n0.72,0,0.1\n",
        LEAD,
        warning="Pb_bdl",
    ),
    "LIMS, words and limits": Layout("Pb,Pb_MDL\nND,0.05\n0.31,0.05\n<LOD,0.1\n0.72,0.1\n", LEAD),
    "LIMS, the limit that stands in the cells": Layout(
        "Pb,Pb_qual,Pb_MDL,Pb_RL\n0.05,U,0.02,0.05\n0.31,,0.02,0.05\n0.1,U,0.04,0.1\n0.72,,0.04,0.1\n",
        LEAD,
    ),
    "LIMS, MDL or RL": Layout(
        "Pb,Pb_qual,Pb_MDL,Pb_RL\n,U,0.02,0.05\n0.31,,0.02,0.05\n,U,0.04,0.1\n0.72,,0.04,0.1\n",
        "Say below which its cells are not detected: limits={'Pb': 'Pb_MDL'}, or limits={'Pb': 'Pb_RL'}",
    ),
    "LIMS, MDL or RL, told": Layout(
        "Pb,Pb_qual,Pb_MDL,Pb_RL\n,U,0.02,0.05\n0.31,,0.02,0.05\n,U,0.04,0.1\n0.72,,0.04,0.1\n",
        LEAD,
        {"limits": {"*": "*_RL"}},
    ),
    "LIMS, other numbers than the limits": Layout(
        "Pb,Pb_qual,Pb_RL\n0.03,U,0.05\n0.31,,0.05\n0.02,U,0.1\n0.72,,0.1\n",
        "If the limits are in Pb_RL, say limits={'Pb': 'Pb_RL'}; if the numbers in the cells are the "
        "limits, leave it out: exclude='Pb_RL'",
    ),
    "LIMS, blank beside a limit": Layout(
        "Pb,Pb_LOD\n,0.05\n0.31,0.05\n,0.1\n0.72,0.1\n",
        "If blank means not detected, pass not_detected=''; if these values are missing for other "
        "reasons, missing=''",
    ),
    "LIMS, blank beside a limit, told": Layout(
        "Pb,Pb_LOD\n,0.05\n0.31,0.05\n,0.1\n0.72,0.1\n", LEAD, {"not_detected": ""}
    ),
    "LIMS, blank and missing": Layout(
        "Pb,Pb_LOD\n,0.05\n0.31,0.05\n", {"Pb": ["", "0.31"]}, {"missing": ""}
    ),
    "LIMS, values on the limit": Layout(
        "Pb,Pb_LOD\n0.05,0.05\n0.31,0.05\n0.1,0.1\n0.72,0.1\n",
        "If they stand for what was not detected, say limits={'Pb': 'Pb_LOD'} and saturated=True; if "
        "they are measured, leave the limits out: exclude='Pb_LOD'",
    ),
    "LIMS, values on the limit, told": Layout(
        "Pb,Pb_LOD\n0.05,0.05\n0.31,0.05\n0.05,0.1\n0.72,0.1\n",
        LEAD,
        {"limits": {"Pb": "Pb_LOD"}, "saturated": True},
    ),
    "LIMS, a limit in the cell and another beside it": Layout(
        "Pb,Pb_RL\n<0.05,0.1\n0.4,0.1\n",
        "In 1 row Pb is not detected, but holds another number than the limit in Pb_RL",
    ),
    "LIMS, limits of nothing": Layout(
        "Lead,Pb_RL\n0.4,0.05\n0.31,0.05\n",
        "column Pb_RL is named like detection limits, but there is no column Pb alone. Say that "
        "they are those of Lead with limits={'Lead': 'Pb_RL'}",
    ),
    "LIMS, limits of nothing, told": Layout(
        "Lead,Pb_RL\nND,0.05\n0.31,0.05\nND,0.1\n0.72,0.1\n",
        {"Lead": LEAD["Pb"]},
        {"limits": {"Lead": "Pb_RL"}},
    ),
    "LIMS, in the cells": Layout("Pb\n<0.05\n0.31\nND(0.1)\n0.72\n", LEAD),
    "LIMS, U after the number": Layout("Pb\n0.05U\n0.31\n0.1 U\n0.72\n", LEAD),
    "LIMS, saturated": Layout("Pb,Pb_q\n0.05,<\n9,>\n", {"Pb": ["<0.05", ">9"]}),
    # R: write.table and write.csv.
    "R, write.table": Layout(
        '"Pb" "PbCen"\n"1" 0.05 TRUE\n"2" 0.31 FALSE\n"3" 0.1 TRUE\n"4" 0.72 FALSE\n',
        LEAD,
        labels=ROWS,
    ),
    "R, write.table without quotes": Layout(
        "Pb PbCen\n1 0.05 TRUE\n2 0.31 FALSE\n3 0.1 TRUE\n4 0.72 FALSE\n", LEAD, labels=ROWS
    ),
    "R, write.table, row.names=FALSE": Layout("Pb Zn\n<0.05 12\n0.31 <5\n<0.1 7.5\n0.72 9\n", BOTH),
    "R, write.table, one column": Layout(
        '"Pb"\n"1" "<0.05"\n"2" "0.31"\n"3" "<0.1"\n"4" "0.72"\n', LEAD, labels=ROWS
    ),
    "R, names of rows with blanks": Layout(
        '"Pb" "Zn"\n"A 1" "<0.05" 12\n"A 2" "0.31" "<5"\n',
        {"Pb": ["<0.05", "0.31"], "Zn": ["12", "<5"]},
        labels=("A 1", "A 2"),
    ),
    "R, tabs": Layout(
        "Pb\tZn\n1\t<0.05\t12\n2\t0.31\t<5\n3\t<0.1\t7.5\n4\t0.72\t9\n", BOTH, labels=ROWS
    ),
    "R, NA": Layout('"Pb" "Zn"\n"1" 0.31 NA\n"2" NA 9\n', {"Pb": ["0.31", ""], "Zn": ["", "9"]}),
    "R, write.csv": Layout(
        '"","Pb","PbCen"\n"1",0.05,TRUE\n"2",0.31,FALSE\n"3",0.1,TRUE\n"4",0.72,FALSE\n',
        LEAD,
        labels=ROWS,
    ),
    "R, write.csv2": Layout(
        '"";"Pb";"PbCen"\n"1";0,05;TRUE\n"2";0,31;FALSE\n"3";0,1;TRUE\n"4";0,72;FALSE\n',
        LEAD,
        {"decimal": ","},
        labels=ROWS,
    ),
    "R, print": Layout(
        "    Pb    Zn\n1   <0.05   12\n2   0.31   <5\n3   <0.1  7.5\n4   0.72    9\n",
        BOTH,
        labels=ROWS,
    ),
    "aligned by blanks": Layout(
        "Pb      Zn\n<0.05   12\n0.31    <5\n<0.1    7.5  \n0.72    9\n", BOTH, {"separator": " "}
    ),
    "names of samples and blanks": Layout(
        "sample Pb Zn\nA <0.05 12\nB 0.31 <5\n",
        {"Pb": ["<0.05", "0.31"], "Zn": ["12", "<5"]},
        {"index": "sample"},
    ),
    "a cell with a blank in it": Layout(
        "Pb conc\n0.05 U\n0.31 J\n", {"Pb conc": ["<0.05", "0.31"]}, warning="J marks"
    ),
    "a sign and a number": Layout("Pb conc\n< 0.05\n> 7\n", {"Pb conc": ["<0.05", ">7"]}),
    # pandas.
    "pandas, to_csv": Layout(
        ",Pb,Zn\n0,<0.05,12\n1,0.31,<5\n2,<0.1,7.5\n3,0.72,9\n", BOTH, labels=("0", "1", "2", "3")
    ),
    "pandas, read again": Layout(
        "Unnamed: 0,Pb\n0,0.31\n1,0.72\n2,0.5\n", "Make it the row labels with index='Unnamed: 0'"
    ),
    "pandas, True and False": Layout(
        "Pb,PbCen\n0.05,True\n0.31,False\n0.1,True\n0.72,False\n", LEAD
    ),
    "pandas, floats": Layout(
        "Pb,PbCen\n0.05,1.0\n0.31,0.0\n0.1,1.0\n0.72,0.0\n", LEAD, warning="1 in PbCen"
    ),
    # Spreadsheets.
    "a spreadsheet": Layout(
        "\ufeffPb;Zn\r\n< 0,05;12\r\n0,31;< 5\r\n<0,1;7,5\r\n0,72;9\r\n", BOTH, {"decimal": ","}
    ),
    "a spreadsheet, decimal commas not told": Layout(
        "Pb;Zn\n0,05;1,5\n0,31;1\n", "pass decimal=','"
    ),
    "a spreadsheet, thousands": Layout(
        "Pb;Zn\n0,31;1.200\n0,72;12.400,5\n",
        {"Pb": ["0.31", "0.72"], "Zn": ["1200", "12400.5"]},
        {"decimal": ",", "thousands": "."},
    ),
    "a spreadsheet, words": Layout(
        "Pb,Zn\nn.d.,12\n0.31,<LOD\n0.4,BDL\n",
        {"Pb": ["ND", "0.31", "0.4"], "Zn": ["12", "ND", "ND"]},
    ),
    "a spreadsheet, units": Layout(
        "Pb,Zn\nug/L,mg/L\n<0.05,12\n0.31,<5\n",
        "the first row (line 2) holds units ('ug/L', 'mg/L'). Take that row away",
    ),
    "a spreadsheet, a total": Layout(
        "sample,Pb\nA,0.31\nB,0.72\nTotal,1.03\n",
        "the last row (line 4) is labelled 'Total', and is no sample, it seems",
        {"index": "sample"},
    ),
    "a spreadsheet, a sum without a label": Layout(
        "Pb,Zn\n0.31,1\n0.72,2\n0.5,4\n1.53,7\n",
        "the last row (line 5) holds the sums of the others",
    ),
    "a spreadsheet, sep=": Layout("sep=;\nPb;Zn\n<0.05;12\n0.31;<5\n<0.1;7.5\n0.72;9\n", BOTH),
    "a spreadsheet, units in the cells": Layout("Pb\n0.05 mg/L\n", "write the number alone"),
    # Columns that are no measurements.
    "ids": Layout(
        "id,Pb\n" + "".join(f"{k},{0.1 * k:.2f}\n" for k in range(1, 13)),
        "column id counts from 1 to 12, each number once: no measurement, it seems. Make it the row "
        "labels with index='id', leave it out with exclude='id'",
    ),
    "batches": Layout(
        "Batch,Pb\n1,0.3\n1,0.4\n2,0.7\n",
        "column Batch holds whole numbers (1, 2), and is named like groups or numbers of rows: no "
        "measurement, it seems. Make it the row labels with index='Batch', compare its groups with "
        "keep='Batch' here and fit(..., by='Batch')",
    ),
    "years": Layout("Year,Pb\n2001,0.3\n2004,0.4\n", {"Pb": ["0.3", "0.4"]}, {"exclude": "Year"}),
    "a flag under a name of its own": Layout(
        "Pb,lt.Pb\n0.05,1\n0.31,0\n",
        "say flags={'Pb': 'lt.Pb:1'} where 1 marks them or flags={'Pb': 'lt.Pb:0'} where 0 marks them.",
    ),
    "codes of 1 and 2": Layout(
        "Pb,Pb.code\n" + "0.05,2\n0.31,1\n" * 6, "say flags={'Pb': 'Pb.code:2'} where 2 marks them"
    ),
    "codes of 1 and 2, told": Layout(
        "Pb,Pb.code\n0.05,2\n0.31,1\n0.1,2\n0.72,1\n", LEAD, {"flags": {"Pb": "Pb.code:2"}}
    ),
    "true and false under a name of its own": Layout(
        "Pb,lessthan\n0.05,TRUE\n0.31,FALSE\n",
        "If 'TRUE' marks values of Pb that are not detected, say flags={'Pb': 'lessthan:TRUE'}",
    ),
    "true and false under a name of its own, told": Layout(
        "Pb,lessthan\n0.05,TRUE\n0.31,FALSE\n0.1,TRUE\n0.72,FALSE\n",
        LEAD,
        {"flags": {"Pb": "lessthan:TRUE"}},
    ),
    "a dummy": Layout(
        "male,Pb\n" + "".join(f"{k % 2},{0.1 + 0.013 * k * k:.3f}\n" for k in range(12)),
        {
            "male": [str(k % 2) for k in range(12)],
            "Pb": [f"{0.1 + 0.013 * k * k:.3f}".rstrip("0") for k in range(12)],
        },
        warning=re.escape("1 column has two or three different values: male (0, 1)"),
    ),
    "patterns": Layout(
        "site,PCB28,PCB52,Pb\nA,1.5,<2,0.3\nB,4,5,0.4\n",
        {"PCB28": ["1.5", "4"], "PCB52": ["<2", "5"]},
        {"columns": "PCB*"},
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_file_is_read_as_what_it_means_or_refused(layout):
    def read():
        return hs.read_csv(io.StringIO(layout.text), **layout.options)

    if isinstance(layout.expected, str):
        with pytest.raises(hs.InputError, match=re.escape(layout.expected)):
            read()
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        data = read()
    cells = np.array(to_cells(data)).T.tolist()
    assert dict(zip(data.names, cells, strict=True)) == layout.expected
    if layout.labels is not None:
        assert data.labels == layout.labels
    assert len(caught) == bool(layout.warning)
    assert all(re.search(layout.warning, str(one.message)) for one in caught)


# Options that a sentence writes out whole.
ADVISED = re.compile(
    r"((?:flags|limits)=\{[^}]*\}|(?:exclude|index|decimal)='[^']*'|(?:not_detected|missing)='')"
)
REFUSED = [name for name, layout in LAYOUTS.items() if isinstance(layout.expected, str)]


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.filterwarnings("ignore::halfseen.HalfseenWarning")
def test_what_a_refusal_advises_can_be_done(name):
    layout = LAYOUTS[name]

    def answer(**options):
        try:
            hs.read_csv(io.StringIO(layout.text), **layout.options, **options)
        except hs.InputError as error:
            return " ".join(str(error).split())
        return ""

    told = answer()
    advised = [option.split("=", 1) for option in ADVISED.findall(told)]
    # Where nothing is advised, the file itself is to be corrected.
    assert advised or any(word in told for word in ("Take", "write the number alone")), told
    for key, value in advised:
        if key not in layout.options:
            both = {"saturated": True} if f"{value} and saturated=True" in told else {}
            next_question = answer(**{key: ast.literal_eval(value)}, **both)
            # One question may lead to the next, not back to itself, nor to a column that is not there.
            assert next_question != told
            assert "there is no column 'X'" not in next_question


def test_the_corpus_is_large_enough():
    assert len(LAYOUTS) >= 40


@pytest.mark.parametrize("name", ["NADA, 0 and 1", "ProUCL", "LIMS, blank with flag and limit"])
@pytest.mark.filterwarnings("ignore:flags are read by the names:halfseen.AssumptionWarning")
def test_frames_are_read_alike(name):
    frame = pd.read_csv(io.StringIO(LAYOUTS[name].text))
    assert np.array(to_cells(hs.from_frame(frame))).T.tolist() == [LEAD["Pb"]]


def test_what_messages_advise_is_spelled_for_who_reads_them():
    with (
        told_in_options(),
        pytest.raises(hs.InputError, match=r"say of which with --flag Lindane=LinCen"),
    ):
        hs.read_csv(io.StringIO(LAYOUTS["NADA2, another name"].text))
    with told_in_options(), pytest.raises(hs.InputError, match=r"--limit Pb=Pb_LOD --saturated"):
        hs.read_csv(io.StringIO(LAYOUTS["LIMS, values on the limit"].text))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"flags": {"Pb": "Cen"}}, "there is no column 'Cen'"),
        ({"flags": {"Pd": "PbCen"}}, "there is no column 'Pd'; the table has 'Pb', 'PbCen'"),
        ({"flags": {"*": "*Flag"}}, r"no two columns are named as '\*=\*Flag' says"),
        ({"flags": {"*": "Cen"}}, r"one \* on each side"),
        ({"flags": {"Pb": "Pb"}}, "a column of flags is another one than 'Pb'"),
        ({"flags": {"Pb": "PbCen:7"}}, "PbCen marks no cell of Pb with '7'; it holds '1', '0'"),
        ({"flags": 3}, "must be a dict"),
        ({"flags": {"Pb": 3}}, "must be a dict"),
        ({"flags": "Pb=PbCen"}, "must be a dict"),
        ({"flags": {3: "PbCen"}}, "there is no column '3'"),
        ({"exclude": 3}, "exclude= must be names of columns"),
        ({"flags": ["PbCen"]}, "is written as a column, =,"),
        ({"limits": {"Pb": "Pb"}}, "cannot be its own limit"),
        ({"exclude": "Zn*"}, r"no column is named like 'Zn\*'"),
        ({"exclude": ["Pb", "PbCen"]}, "has no columns to read"),
        ({"columns": "Z*"}, r"no column is named like 'Z\*'"),
    ],
)
def test_what_is_declared_must_fit_the_table(options, sentence):
    with pytest.raises(hs.InputError, match=sentence):
        hs.read_csv(io.StringIO("Pb,PbCen\n0.05,1\n0.3,0\n"), **options)


def test_what_is_named_among_the_columns_is_not_doubted():
    text = "Year,Pb\n2001,0.3\n2004,0.4\n"
    assert hs.read_csv(io.StringIO(text), columns=["Year", "Pb"]).names == ("Year", "Pb")
    assert hs.read_csv(io.StringIO(text), companions=False).names == ("Year", "Pb")


def test_a_limit_that_is_no_number_is_refused():
    with pytest.raises(
        hs.InputError, match=r"line 3, column Pb_RL: a limit is a number, or empty; got 'x'"
    ):
        hs.read_csv(io.StringIO("Pb,Pb_RL\nND,0.05\n0.3,x\n"), limits={"Pb": "Pb_RL"})


def test_flags_in_a_frame_of_numbers_are_not_modelled():
    frame = pd.read_csv(io.StringIO(LAYOUTS["NADA, 0 and 1"].text))
    with pytest.raises(hs.InputError, match=r"column 'PbCen' holds 0 and 1.*from_frame"):
        hs.fit(frame)
