// Announces collectives as a backend for devices does, with PyTorch's own macros; only tests compile it.
#include <torch/csrc/distributed/c10d/ParamCommsUtils.hpp>
#include <ATen/ATen.h>
extern "C" void emit(int which) {
  std::vector<at::Tensor> in{at::ones({6, 2})}, out{at::ones({4, 6, 2})};
  if (which == 0) {
    RECORD_PARAM_COMMS_DATA(std::make_tuple(static_cast<int64_t>(5), false), std::make_tuple(std::string("0"), std::string("default_pg")), in, out, 3,
      "_allgather_base", 12, 48, at::kBFloat16, std::vector<int64_t>(), std::vector<int64_t>(), 0, 1, 4);
  } else if (which == 1) {
    RECORD_PARAM_COMMS_DATA_WITH_ASYNC_OP(std::make_tuple(static_cast<int64_t>(6), false), std::make_tuple(std::string("a group of a long name indeed"), std::string("mesh_dp")), in, out, 1,
      "all_to_allv", 12, 12, at::kFloat, std::vector<int64_t>({1, 2, 3}), std::vector<int64_t>({4, 5}), 2, 4, 3, false);
  } else if (which == 2) {
    RECORD_PARAM_COMMS_DATA(std::make_tuple(static_cast<int64_t>(7), true), std::make_tuple(std::string("1"), std::string("pp")), in, out, 1,
      "send", 12, 12, at::kLong, std::vector<int64_t>(), std::vector<int64_t>(), 8, 8, 64);
  } else if (which == 3) {
    RECORD_PARAM_COMMS_DATA(std::make_tuple(static_cast<int64_t>(8), true), std::make_tuple(std::string("1"), std::string("pp")), in, out, 0,
      "recv", 12, 12, at::kHalf, std::vector<int64_t>(), std::vector<int64_t>(), 8, 8, 2);
  } else {
    RECORD_PARAM_COMMS(std::make_tuple(static_cast<int64_t>(9), false), std::make_tuple(std::string("0"), std::string("default_pg")), 3,
      "wait", 0, 0, at::kByte, std::vector<int64_t>(), std::vector<int64_t>(), 0, 1, 31);
  }
}
