#!/usr/bin/env python3
"""Writes golden.json: what the Python implementation of protobuf makes of JSON, and JSON of that.

Run it in this folder after a change of a .proto file or of the cases below, with protobuf and grpcio-tools installed:

    python3 -m venv venv && venv/bin/pip install protobuf grpcio-tools && venv/bin/python make.py

Each case is a body of JSON; beside it stand the bytes of the message in hex, and the JSON that is made of these with every field
that always has a value. Where the implementation refuses the body there is neither.
"""

import importlib, json, sys, tempfile
from google.protobuf import json_format
from grpc_tools import protoc

CASES = {
    "golden.Kinds/Scalars": [
        {},
        {"double": 1.5, "float": 0.25, "int32": -1, "int64": "-9007199254740993", "uint32": 4294967295,
         "uint64": "18446744073709551615", "sint32": -2147483648, "sint64": "-9223372036854775808", "fixed32": 4294967295,
         "fixed64": "18446744073709551615", "sfixed32": -5, "sfixed64": "-6", "bool": True, "string": "caf\u00e9 \u2603 \U0001f600",
         "bytes": "AAH+/w==", "color": "RED", "maybe": 0, "said": ""},
        {"int64": 5, "uint64": 7, "int32": 1e3, "uint32": "8", "sint32": 3.0, "double": "1e-7", "float": "2.5"},
        {"double": "NaN", "float": "Infinity"}, {"double": "-Infinity"}, {"double": 5e-324}, {"double": 1.7976931348623157e308},
        {"color": "BLUE"}, {"color": 7}, {"color": -2}, {"color": 99}, {"color": "BELOW"}, {"color": "GREEN"},
        {"bytes": ""}, {"bytes": "_-8="}, {"bytes": "_-8"}, {"bytes": "/+8="},
        {"snakeCaseName": "a"}, {"snake_case_name": "b"}, {"another": "c"}, {"named": "d"},
        {"string": None, "int32": None, "maybe": None, "color": None},
        {"int32": 2147483648}, {"int32": 1.5}, {"uint32": -1}, {"int64": "x"}, {"bool": "true"}, {"bool": 1}, {"string": 5},
        {"unknown": 1}, {"float": 1e39}, {"int64": 9007199254740993}, {"string": "\u0000"},
    ],
    "golden.Kinds/Lists": [
        {},
        {"numbers": [0, 1, -1, 300], "signed": ["-1", 2], "fixed": [0, 4294967295], "doubles": [0, -0.0, 1e300], "bools": [True, False],
         "strings": ["", "a"], "blobs": ["", "AA=="], "colors": ["RED", 0, 7, 99], "messages": [{}, {"int32": 1}], "unpacked": [1, 2]},
        {"numbers": []}, {"numbers": None}, {"numbers": 1}, {"numbers": [None]}, {"numbers": [[1]]},
    ],
    "golden.Kinds/Maps": [
        {},
        {"strings": {"a": "b"}, "messages": {"-3": {"string": "x"}}, "blobs": {"9223372036854775807": "AQ=="}, "colors": {"true": "RED"},
         "doubles": {"18446744073709551615": 0.5}, "bools": {"-2147483648": True}, "fixed": {"5": "five"}},
        {"strings": {"": ""}}, {"messages": {"0": {}}}, {"colors": {"false": 0}}, {"strings": {"a": None}}, {"colors": {"yes": "RED"}},
        {"messages": {"x": {}}}, {"strings": [1]},
    ],
    "golden.Kinds/Choice": [
        {}, {"number": 0}, {"text": ""}, {"inner": {"inner": {"text": "deep"}}}, {"color": "COLOR_NONE"}, {"nothing": {}}, {"blob": "AA=="},
        {"number": 1, "yes": True}, {"no": False}, {"number": 1, "text": "two"}, {"number": None, "text": "one"}, {"yes": True, "no": True},
    ],
    "golden.Kinds/Known": [
        {},
        {"at": "2026-11-22T12:00:00.123456789Z", "took": "3.000000001s", "mask": "a,bC.d", "empty": {}},
        {"at": "1969-12-31T23:59:59.5Z", "took": "-1.5s"}, {"at": "2026-11-22T12:00:00+01:30"}, {"at": "0001-01-01T00:00:00Z"},
        {"at": "9999-12-31T23:59:59.999999999Z", "took": "315576000000s"}, {"took": "0s"}, {"took": "1.10s"},
        {"at": "yesterday"}, {"at": "2026-11-22"}, {"at": 5}, {"took": "3"}, {"took": "3m"}, {"at": "10000-01-01T00:00:00Z"},
        {"struct": {"a": 1, "b": [True, None, "x", {"c": []}]}}, {"struct": {}}, {"value": None}, {"value": 0}, {"value": "s"}, {"value": [1, {}]},
        {"value": {"x": False}}, {"list": []}, {"list": [1, "a", None]}, {"null": None}, {"null": "NULL_VALUE"},
        {"any": {"@type": "type.googleapis.com/golden.Choice", "number": 5}},
        {"any": {"@type": "type.googleapis.com/google.protobuf.Duration", "value": "1s"}}, {"any": {}},
        {"any": {"@type": "type.googleapis.com/no.Such"}},
        {"double": 0, "float": 1.5, "int64": "-5", "uint64": "18446744073709551615", "int32": 0, "uint32": 1, "bool": False, "string": "", "bytes": ""},
        {"double": None, "string": None}, {"int64": 9}, {"times": ["1970-01-01T00:00:00Z", "1970-01-01T00:00:01Z"]}, {"counts": {"a": "5"}},
    ],
    "golden.older.Older/Old": [
        {"id": 0}, {"id": 1, "name": "nobody", "closed": "FIRST", "share": 0.5}, {"id": 1, "part": {"size": 5}, "item": [{"label": "a"}, {}]},
        {"id": 1, "unpacked": [1, 2], "packed": [3, 4]}, {"id": 1, "closed": 2}, {"id": 1, "[golden.older.note]": "x"}, {"id": 1, "closed": "THIRD"},
    ],
    "golden.edition.Edition/New": [
        {}, {"explicit": 0, "implicit": 0}, {"explicit": 1, "implicit": 2, "expanded": [1, 2], "packed": [3, 4], "inner": {"text": "usual"}},
        {"open": 5}, {"shut": "SHUT_ONE"},
    ],
    "golden.newer.Newer/Call": [
        {"id": 0, "name": ""}, {"id": 7, "name": "x", "list": [1, 2, 300]}, {"id": 1, "byName": {"a": {"id": 1}}},
        {"id": 1, "part": {"size": 3}, "kind": "KIND_TWO"}, {"id": 1, "text": "t"}, {"id": 1, "kind": "KIND_NINE"},
        {"id": 1, "inner": {"deep": [1, 2], "size": 0}}, {"id": 1, "usual": "", "bits": "AA=="},
    ],
}


def main():
    files = ["kinds", "older", "edition", "newer"]
    with tempfile.TemporaryDirectory() as folder:
        import grpc_tools, os
        known = os.path.join(os.path.dirname(grpc_tools.__file__), "_proto")
        if protoc.main(["", "-I.", f"-I{known}", f"--python_out={folder}"] + [f"{name}.proto" for name in files]):
            sys.exit("the .proto files do not compile")
        if protoc.main(["", "-I.", "--descriptor_set_out=editions.pb", "edition.proto", "newer.proto"]):
            sys.exit("the descriptors are not written")
        sys.path.insert(0, folder)
        modules = [importlib.import_module(f"{name}_pb2") for name in files]
        cases = []
        for method, bodies in CASES.items():
            service, name = method.split("/")
            descriptor = next(
                service_of.methods_by_name[name].input_type
                for module in modules
                for service_of in module.DESCRIPTOR.services_by_name.values()
                if service_of.full_name == service
            )
            for body in bodies:
                case = {"method": f"/{method}", "body": body}
                message = descriptor._concrete_class()
                try:
                    json_format.ParseDict(body, message)
                    case["hex"] = message.SerializeToString(deterministic=True).hex()
                    text = json_format.MessageToJson(message, always_print_fields_with_no_presence=True)
                    case["json"] = json.loads(text, parse_constant=None)
                except (json_format.Error, ValueError, OverflowError) as refused:
                    case = {"method": f"/{method}", "body": body, "refused": str(refused).split("\n")[0]}
                cases.append(case)
    lines = ",\n".join(json.dumps(case, ensure_ascii=True) for case in cases)
    with open("golden.json", "w") as out:
        out.write(f"[\n{lines}\n]\n")


main()
