"""Checks JSON against schemas: from stdin pairs of a schema and an instance, to stdout a line for each thing that is wrong."""

import json
import sys

from jsonschema import Draft202012Validator

for number, (schema, instance) in enumerate(json.load(sys.stdin)):
    Draft202012Validator.check_schema(schema)
    errors = Draft202012Validator(schema).iter_errors(instance)
    for _, error in zip(range(10), errors):
        print(f"{number}: {error.json_path}: {error.message[:300]}")
