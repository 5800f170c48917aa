from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sparq_environments._file_rows import ReadingError
from sparq_environments._site_record import Rule
from tests.environments.test_readings import record, tidy

GAPPY = (
    *("2020-01-01,a,1,2,10", "2020-01-02,a,1,2,20", "2020-01-05,a,1,2,50"),
    *("2020-01-02,b,3,4,24", "2020-01-03,b,3,4,34", "2020-01-05,b,3,4,54"),
)


@pytest.mark.parametrize(
    ("gaps", "a", "b"),
    [
        ("interpolate", [10, 20, 30, 40, 50], [24, 24, 34, 44, 54]),
        ("carry", [10, 20, 20, 20, 50], [24, 24, 34, 34, 54]),
        # Network means 10, 22, 34, (43), 52; mean distances -4/3 and 4/3.
        (
            "anomaly",
            [10, 20, 34 - 4 / 3, 43 - 4 / 3, 50],
            [10 + 4 / 3, 24, 34, 43 + 4 / 3, 54],
        ),
    ],
)
def test_gaps_are_filled_by_the_rule_and_flagged(
    tmp_path: Path, gaps: Rule, a: list[float], b: list[float]
) -> None:
    made = record(tidy(tmp_path / "t.csv", *GAPPY), gaps=gaps)
    np.testing.assert_allclose(made.values, np.transpose([a, b]), rtol=1e-12)
    assert made.observed.T.tolist() == [
        [True, True, False, False, True],
        [False, True, True, False, True],
    ]
    assert made.repairs == (
        f"4 of 10 values (40.0 %) are gaps, filled by '{gaps}'",
        "1 steps have no reading at all",
    )


def test_sites_read_too_seldom_are_left_out_and_told(tmp_path: Path) -> None:
    file = tidy(tmp_path / "t.csv", *GAPPY, "2020-01-03,c,5,6,1")
    made = record(file, least=0.6)
    assert made.sites == ("a", "b")
    assert made.repairs[0] == "1 sites below coverage 0.6 left out: c (0.20)"


def test_too_few_sites_left_are_refused_with_their_shares(tmp_path: Path) -> None:
    told = r"0 of 2 sites .* at least 0.7 of the 5 steps.*a \(0.60\), b \(0.60\).*lower coverage"
    with pytest.raises(ReadingError, match=told):
        record(tidy(tmp_path / "t.csv", *GAPPY), least=0.7)
