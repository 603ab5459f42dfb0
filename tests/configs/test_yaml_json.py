"""A value of a YAML file that does not exist, such as the date 2020-13-45, is a syntax error."""

import pytest
import yaml

from agenticiqa.configs.yaml_json import yaml_value


@pytest.mark.parametrize(
    "value",
    ["2020-13-45", "2020-01-01T99:00:00", "9" * 5000, "1:" * 300 + "1.5", '!!int ""', "!!bool x", "!!timestamp x"],
)
def test_an_impossible_value_is_an_error_of_yaml(value: str) -> None:
    with pytest.raises(yaml.YAMLError, match="a date or a number is not valid"):
        yaml_value(f"key: {value}")
