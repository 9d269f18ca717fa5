"""What all tests share: every loss by name."""

from nceref import registry

LOSSES = registry.names("nceref.family")


def pytest_generate_tests(metafunc):
    """A test that asks for `loss_name` runs for every loss."""
    if "loss_name" in metafunc.fixturenames:
        metafunc.parametrize("loss_name", LOSSES)
