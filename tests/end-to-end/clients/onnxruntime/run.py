"""Runs a small network on the GPU with ONNX Runtime's WebGPU provider, as often as the argument says."""

import json
import sys
import time

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

TIMES = int(sys.argv[1]) if len(sys.argv) > 1 else 4

rng = np.random.default_rng(0)


def weights(name, shape):
    values = rng.standard_normal(shape).astype(np.float32) * 0.1
    return helper.make_tensor(name, TensorProto.FLOAT, shape, values.flatten())


def tensor(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


nodes = [
    helper.make_node("MatMul", ["x", "first"], ["a"]),
    helper.make_node("Relu", ["a"], ["b"]),
    helper.make_node("MatMul", ["b", "second"], ["c"]),
    helper.make_node("Softmax", ["c"], ["y"], axis=-1),
]
constants = [weights("first", [128, 256]), weights("second", [256, 64])]
graph = helper.make_graph(nodes, "small", [tensor("x", [16, 128])], [tensor("y", [16, 64])], constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
model.ir_version = 10
onnx.checker.check_model(model)

session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["WebGpuExecutionProvider"])
assert session.get_providers()[0] == "WebGpuExecutionProvider", session.get_providers()
x = rng.standard_normal((16, 128)).astype(np.float32)
start = time.monotonic()
outputs = [session.run(None, {"x": x + step})[0] for step in range(TIMES)]
seconds = time.monotonic() - start
first, second = (onnx.numpy_helper.to_array(constant) for constant in constants)
for step, output in enumerate(outputs):
    c = np.maximum((x + step) @ first, 0) @ second
    expected = np.exp(c - c.max(axis=-1, keepdims=True))
    expected /= expected.sum(axis=-1, keepdims=True)
    assert np.allclose(output, expected, atol=1e-5), "the GPU's numbers are wrong"
results = [output.tobytes().hex()[:64] for output in outputs]
print(json.dumps({"dispatches": None, "results": results, "seconds": seconds}))
