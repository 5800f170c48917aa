from __future__ import annotations

from typing import Any

import pytest

from sparq_sim import (
    PluginError,
)
from sparq_sim.testing import (
    Asker,
    Slope,
    Teller,
    check_environment,
    check_expert,
    check_optimizer,
)


@pytest.mark.parametrize(
    ("check", "kind"),
    [(check_environment, Slope), (check_expert, Teller), (check_optimizer, Asker)],
)
def test_a_class_in_the_place_of_a_model_is_named(check: Any, kind: type[Any]) -> None:
    told = rf"expected an instance of sparq_sim\.\w+, as {kind.__name__}\(…\) makes, not <class"
    with pytest.raises(PluginError, match=told):
        check(kind)
