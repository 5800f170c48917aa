from __future__ import annotations

from pathlib import Path

import pytest

from sparq_experts.wireless.node_table import NodeAt, check_file, read_nodes
from sparq_sim.errors import PluginError


def written(folder: Path, text: str) -> Path:
    file = folder / "nodes.csv"
    file.write_text(text, encoding="utf-8")
    return file


def read(
    folder: Path, text: str, *, names: tuple[str, ...] = ("lat", "lon"), sites: bool = False
) -> list[NodeAt]:
    return [node for _, node in read_nodes(written(folder, text), names, sites=sites)]


def test_columns_are_found_by_the_names_of_coordinates_or_by_numbers(tmp_path: Path) -> None:
    by_name = read(tmp_path, "lon,lat\n-74,40\n")
    by_number = read(tmp_path, "x1,x0\n-74,40\n")
    assert by_name == by_number == [NodeAt(at=(40.0, -74.0))]


def test_empty_cells_blank_lines_and_other_columns_are_left_out(tmp_path: Path) -> None:
    text = "\ufefflat, lon ,battery,spreading_factor,distance,owner\n1,2,,9,,us\n\n3,4,5.5,,7,\n"
    assert read(tmp_path, text) == [
        NodeAt(at=(1.0, 2.0), spreading_factor=9),
        NodeAt(at=(3.0, 4.0), battery=5.5, distance=7.0),
    ]


def test_names_stand_for_coordinates_where_there_are_sites(tmp_path: Path) -> None:
    text = "name,battery\nmill,5\n"
    assert read(tmp_path, text, sites=True) == [NodeAt(name="mill", battery=5.0)]
    with pytest.raises(PluginError, match=r"has no column 'lat' \(or 'x0'\)"):
        read(tmp_path, text)


def test_a_file_is_read_again_only_when_it_has_changed(tmp_path: Path) -> None:
    file = written(tmp_path, "lat,lon\n1,2\n")
    first = read_nodes(file, ("lat", "lon"))
    assert read_nodes(file, ("lat", "lon")) == first
    file.write_text("lat,lon\n1,2\n3,4\n", encoding="utf-8")
    assert len(read_nodes(file, ("lat", "lon"))) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lat,x9\n1,2\n", r"no column 'lon' \(or 'x1'\) .*its columns are: lat, x9; add it"),
        ("lat;lon\n1;2\n", r"no column 'lat'.*separate the columns by commas"),
        ("lat,lon\n1,2\n3,north\n", r"nodes.csv, line 3, lon: 'north' is no number; write"),
        ("lat,lon\n1,\n", r"line 2, lon: '' is no number"),
        ("lat,lon\n1,nan\n", r"line 2, lon: 'nan' is not finite"),
        ("lat,lon,battery\n1,2,0\n", r"line 2, battery: '0' is not above 0; .* in J, or leave"),
        ("lat,lon,battery\n1,2,-3\n", r"line 2, battery: '-3' is not above 0"),
        ("lat,lon,battery\n1,2,inf\n", r"line 2, battery: 'inf' is not finite"),
        ("lat,lon,distance\n1,2,-1\n", r"line 2, distance: '-1' is not above 0; .* in m"),
        ("lat,lon,spreading_factor\n1,2,13\n", r"spreading_factor: '13' .* from 7 to 12"),
        ("lat,lon,spreading_factor\n1,2,7.5\n", r"'7.5' is no spreading factor"),
        ("lat,lon,Batery\n1,2,3\n", r"line 1: the column 'Batery' is not used; .*'battery'\?"),
        ("lat,lon,lat\n1,2,3\n", r"line 1: the column 'lat' stands there twice"),
        ("lat,lon\n0,5,1,5\n", r"line 2: 4 cells, but the header has 2; .* decimals with a point"),
        ("lat,lon\n", r"has no nodes; it needs a header and a line for each node"),
        ("", r"has no nodes"),
    ],
)
def test_a_wrong_file_is_refused_with_line_column_value_and_remedy(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(PluginError, match=message):
        read(tmp_path, text)


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "nodes.csv"
    file.write_bytes(b"lat,lon\n\xff\xfe,2\n")
    with pytest.raises(PluginError, match="is not a text file in UTF-8"):
        check_file(file)
    with pytest.raises(PluginError, match=f"{tmp_path} cannot be read"):
        check_file(tmp_path)
