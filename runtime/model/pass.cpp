// runtime/model/pass.cpp -- names of exchanges.
#include "runtime/model/pass.hpp"

namespace shoal::model {

const char* name_of(exchange_point point) {
  switch (point) {
  case exchange_point::attention_output:
    return "attention output";
  case exchange_point::mlp_output:
    return "MLP output";
  case exchange_point::mlp_input_gradient:
    return "MLP input gradient";
  case exchange_point::attention_input_gradient:
    return "attention input gradient";
  case exchange_point::expert_rows:
    return "expert rows";
  case exchange_point::expert_results:
    return "expert results";
  case exchange_point::expert_result_gradients:
    return "expert result gradients";
  case exchange_point::expert_row_gradients:
    return "expert row gradients";
  }
  return "?";
}

} // namespace shoal::model
