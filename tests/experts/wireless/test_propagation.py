"""Path loss: ranges against published ones, shadowing and fading against their laws."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from sparq_experts.wireless.lora import SENSITIVITIES
from sparq_experts.wireless.propagation import (
    AnyPathLoss,
    CastaliaLoss,
    LorasimLoss,
    OuluLoss,
    PathLoss,
)

PRESETS: list[PathLoss] = [LorasimLoss(), OuluLoss(), CastaliaLoss()]


@pytest.mark.parametrize(
    ("preset", "factor", "metres", "within"),
    [
        (LorasimLoss(), 7, 170, 1),
        (LorasimLoss(), 12, 360, 1),
        (OuluLoss(), 7, 3100, 50),
        (OuluLoss(), 12, 6100, 50),
    ],
)
def test_ranges_at_14_dbm_hold_with_the_sensitivities_of_lorasim(
    preset: PathLoss, factor: int, metres: float, within: float
) -> None:
    budget = 14 - SENSITIVITIES["lorasim"][factor - 7]
    assert preset.range(budget) == pytest.approx(metres, abs=within)


def test_with_the_sensitivities_of_the_data_sheet_oulu_reaches_2_5_to_8_9_km() -> None:
    oulu = OuluLoss()
    near, far = (14 - SENSITIVITIES["sx1272"][0], 14 - SENSITIVITIES["sx1272"][5])
    assert oulu.range(near) == pytest.approx(2455, abs=1)
    assert oulu.range(far) == pytest.approx(8925, abs=10)


def test_the_choice_of_path_loss_is_a_factor_of_17() -> None:
    budget = 14 - SENSITIVITIES["lorasim"][5]
    assert OuluLoss().range(budget) / LorasimLoss().range(budget) == pytest.approx(17, abs=0.2)


def test_the_logarithm_is_to_base_10_where_ln_would_make_360_m_to_104_m() -> None:
    lorasim = LorasimLoss()
    budget = 14 - SENSITIVITIES["lorasim"][5]
    assert lorasim.range(budget) == pytest.approx(360, abs=1)
    mistaken = 40 * exp((budget - lorasim.reference_loss) / (10 * lorasim.exponent))
    assert mistaken == pytest.approx(104, abs=0.5)
    assert lorasim.loss(np.array([400.0]))[0] == pytest.approx(127.41 + 20.8)


def test_constants_are_the_published_ones() -> None:
    constants = [(p.reference_distance, p.reference_loss, p.exponent, p.shadowing) for p in PRESETS]
    assert constants == [
        (40, 127.41, 2.08, 3.57),
        (1000, 128.95, 2.32, 7.8),
        (1, 55, 2.4, 4),
    ]


@given(st.sampled_from(PRESETS), st.floats(1, 1e5))
def test_range_is_the_inverse_of_loss(preset: PathLoss, metres: float) -> None:
    assert preset.range(float(preset.loss(np.array([metres]))[0])) == pytest.approx(metres)


@given(st.sampled_from(PRESETS), st.floats(0, 1e5), st.floats(0, 1e5))
def test_farther_never_loses_less(preset: PathLoss, metres: float, more: float) -> None:
    near, far = preset.loss(np.array([metres, metres + more]))
    assert far >= near


def test_below_1_m_the_loss_is_that_at_1_m() -> None:
    for preset in PRESETS:
        assert preset.loss(np.array([0.0, 0.3, 1.0])) == pytest.approx(preset.loss(np.ones(3)))


def test_losses_have_the_shape_of_the_distances() -> None:
    assert OuluLoss().loss(np.full((2, 3), 1000.0)) == pytest.approx(np.full((2, 3), 128.95))


def test_shadowing_has_its_standard_deviation() -> None:
    drawn = OuluLoss().draw_shadowing(np.random.default_rng(0), (200, 100))
    assert drawn.shape == (200, 100)
    assert drawn.mean() == pytest.approx(0, abs=4 * 7.8 / 20_000**0.5)
    assert drawn.std() == pytest.approx(7.8, rel=0.02)
    without = OuluLoss(shadowing=0.0).draw_shadowing(np.random.default_rng(0), (3,))
    assert np.all(without == 0)


def test_rayleigh_fading_multiplies_power_by_an_exponential_number() -> None:
    fading = OuluLoss(fading="rayleigh")
    rng = np.random.default_rng(0)
    drawn = 10 ** (np.array([fading.draw_fading(rng) for _ in range(20_000)]) / 10)
    assert drawn.mean() == pytest.approx(1, abs=4 / 20_000**0.5)
    assert np.mean(drawn > 1) == pytest.approx(exp(-1), abs=0.015)


def test_without_fading_nothing_is_drawn() -> None:
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    assert OuluLoss().draw_fading(rng) == 0
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.kind)
def test_a_preset_is_found_by_its_kind(preset: PathLoss) -> None:
    read = TypeAdapter[PathLoss](AnyPathLoss).validate_python
    kind = preset.model_dump()["kind"]
    assert read({"kind": kind}) == preset
    assert read({"kind": kind, "shadowing": 0.0}).shadowing == 0
    with pytest.raises(ValidationError, match="exponent"):
        read({"kind": kind, "exponent": 0.0})
