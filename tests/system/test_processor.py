"""The name of a processor, from what Linux says of it."""

import pytest

from distgnn.system.processor import describe


@pytest.mark.parametrize(
    "vendor, family, model, name",
    [
        ("AuthenticAMD", 25, 17, "A (Zen 4)"),
        ("AuthenticAMD", 25, 1, "A (Zen 3)"),
        ("AuthenticAMD", 23, 49, "A (Zen 2)"),
        ("AuthenticAMD", 26, 2, "A (Zen 5)"),
        ("AuthenticAMD", 99, 2, "A"),
        ("GenuineIntel", 6, 143, "A"),
    ],
)
def test_the_generation_of_a_processor_is_named(vendor, family, model, name):
    facts = f"processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\nmodel name\t: A\n"
    assert describe(f"{facts}\n{facts.replace(': A', ': B')}") == name


@pytest.mark.parametrize(
    "maker, part, name",
    [
        ("0x41", "0xd40", "Neoverse V1"),
        ("0x41", "0xd08", "Arm, maker 0x41, part 0xd08"),
        ("0xc0", "0xd40", "Arm, maker 0xc0, part 0xd40"),
    ],
)
def test_a_processor_of_arm_is_told_from_another(maker, part, name):
    facts = (
        f"processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: {maker}\nCPU variant\t: 0x1\nCPU part\t: {part}\n"
    )
    assert describe(f"{facts}\n{facts}") == name
    assert describe("processor\t: 0\nFeatures\t: fp asimd\n") == ""
