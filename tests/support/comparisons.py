"""Sample versions of a tool to compare."""

from dataclasses import replace

from support.tool_samples import TOOL

V1, V2, V3 = "20250101_00", "20250202_00", "20250303_00"
PLAIN = replace(
    TOOL,
    toolkit="a",
    slug="A_DO",
    version=V1,
    input_parameters={},
    output_parameters={},
    tags=(),
    scopes=(),
    deprecation=None,
)
NEEDY = replace(
    PLAIN, input_parameters={"to": {"type": "string", "description": "", "required": True}}
)
