// runtime/jobs/run_parse.cpp -- reads the JSON of a run file and collects
// mistakes.
#include "runtime/core/text/nearest.hpp"
#include "runtime/core/text/shown.hpp"
#include "runtime/files/json.hpp"
#include "runtime/jobs/other_names.hpp"
#include "runtime/jobs/run_numbers.hpp"
#include "runtime/model/config/default_sizes.hpp"

#include <algorithm>
#include <limits>

namespace shoal::runtime {
namespace {

using json = nlohmann::ordered_json;
using model::failure;

/// Stores a JSON value in a key's member; returns a sentence if it cannot.
struct put_value {
  run_config& run;
  const run_key& key;
  const json& value;

  std::string range(double x, const std::string& text) const {
    if (x == -1 && may_choose(key))
      return {};
    if (std::isfinite(x) && x >= key.low && x <= key.high)
      return {};
    return "is " + text + ", must be " + (may_choose(key) ? "-1 or " : "")
           + "between " + number(key.low) + " and " + number(key.high);
  }
  std::string is_no(const std::string& type) const {
    return "is " + model::shown(value) + ", must be " + type;
  }
  std::string operator()(std::string run_config::*at) const {
    if (!value.is_string())
      return is_no("a string");
    run.*at = value.get<std::string>();
    return {};
  }
  std::string operator()(double run_config::*at) const {
    if (!value.is_number())
      return is_no("a number");
    run.*at = value.get<double>();
    return range(run.*at, number(run.*at));
  }
  std::string operator()(std::int64_t run_config::*at) const {
    if (!value.is_number_integer())
      return is_no("a whole number");
    if (value.is_number_unsigned()
        && value.get<std::uint64_t>()
             > std::uint64_t(std::numeric_limits<std::int64_t>::max()))
      return "is too large";
    run.*at = value.get<std::int64_t>();
    return range(double(run.*at), std::to_string(run.*at));
  }
  std::string operator()(bool run_config::*at) const {
    if (!value.is_boolean())
      return is_no("true or false");
    run.*at = value.get<bool>();
    return {};
  }
  std::string operator()(std::vector<std::string> run_config::*at) const {
    (run.*at).clear();
    if (value.is_string()) {
      (run.*at).push_back(value.get<std::string>());
      return {};
    }
    if (!value.is_array())
      return "must be a list of strings";
    for (const json& item : value) {
      if (!item.is_string())
        return "must be a list of strings";
      (run.*at).push_back(item.get<std::string>());
    }
    return {};
  }
  std::string operator()(std::vector<std::int64_t> run_config::*at) const {
    (run.*at).clear();
    if (!value.is_array())
      return "must be a list of whole numbers";
    for (const json& item : value) {
      if (!item.is_number_integer())
        return "must be a list of whole numbers";
      (run.*at).push_back(item.get<std::int64_t>());
      const std::int64_t last = (run.*at).back();
      if (std::string wrong = range(double(last), std::to_string(last));
          !wrong.empty())
        return "has an entry that " + wrong;
    }
    return {};
  }
};

/// The probable place of a key that a section lacks: another section that has a key of
/// this name, unless one of its own is one letter away; what other trainers call so; or
/// the nearest of the section's keys.
std::string meant_key(std::string_view section, const std::string& name) {
  const auto in_model = [&] {
    std::vector<std::string_view> names = model::known_keys();
    names.push_back("path");
    return names;
  }();
  std::vector<std::string_view> near;
  std::string_view other;
  if (section == "model")
    near = in_model;
  else if (std::ranges::find(in_model, name) != in_model.end())
    other = "model";
  for (const run_key& k : keys())
    if (k.section == section)
      near.push_back(k.name);
    else if (k.name == name && other.empty())
      other = k.section;
  if (!other.empty() && core::nearest(name, near, 1).empty())
    return ": it is a key of [" + std::string(other) + "]";
  if (const other_name* const o = key_called_otherwise(name)) {
    std::string_view key = o->key;
    if (key.substr(0, key.find('.')) == section)
      key.remove_prefix(section.size() + 1);
    return core::suggestion(key)
           + (o->differs.empty()
                ? std::string()
                : " Its value differs: " + std::string(o->differs));
  }
  const std::string_view meant = core::meant(name, near);
  return core::suggestion(section == "model" ? model::suggested_key(name, meant)
                                             : meant);
}

/// This family's spelling of a key that only other families spell like that: such a
/// key would have no effect, and the model the usual size. "": this family reads the
/// key, no family spells it so, or the family is not known.
std::string own_name(const json& model_type, std::string_view key) {
  std::string_view usual, own;
  const model::family* is = nullptr;
  for (const model::family& f : model::families()) {
    if (model_type == f.model_type)
      is = &f;
    for (const model::key_alias& a : f.aliases)
      if (a.own == key)
        usual = a.usual;
  }
  if (is == nullptr || usual.empty())
    return {};
  own = usual;
  for (const model::key_alias& a : is->aliases) {
    if (a.own == key)
      return {};
    if (a.usual == usual)
      own = a.own;
  }
  return std::string(own);
}

/// The mistakes in a run, in the order of the file.
class mistakes {
public:
  explicit mistakes(std::string_view source) : before_(source) {
    before_ += ": ";
  }

  void add(const std::string& text) { add_whole(before_ + text); }

  /// Adds a text that names its place itself.
  void add_whole(const std::string& text) {
    if (++count_ <= run_mistakes_max)
      all_ += (all_.empty() ? "" : "\n") + text;
  }

  bool none() const { return count_ == 0; }

  failure why() const {
    const std::size_t more = count_ - std::min(count_, run_mistakes_max);
    return failure{more == 0 ? all_
                             : all_ + "\n" + before_ + "and "
                                 + std::to_string(more) + " more"};
  }

private:
  std::string before_;
  std::string all_;
  std::size_t count_ = 0;
};

void read_model(const json& section, std::string_view source, run_config& run,
                mistakes& wrong) {
  if (!section.is_object())
    return wrong.add("[model] must be a table");
  if (section.contains("path")) {
    const json& path = section["path"];
    if (!path.is_string())
      wrong.add("model.path is " + model::shown(path) + ", must be a string");
    else if (path.get_ref<const std::string&>().empty())
      wrong.add("model.path is empty: leave it out, or name a model's "
                "directory");
    else
      run.model_path = path.get<std::string>();
  }
  std::vector<std::string_view> known = model::known_keys();
  known.push_back("path");
  json keys = json::object();
  for (const auto& [name, value] : section.items()) {
    if (std::ranges::find(known, name) == known.end())
      wrong.add("unknown key model." + core::shown(name)
                + meant_key("model", name));
    else if (name != "path")
      keys[name] = value;
  }
  if (keys.empty() && section.contains("path"))
    return;
  if (!keys.contains("model_type"))
    keys["model_type"] = "llama";
  for (const auto& item : keys.items())
    if (const std::string own = own_name(keys["model_type"], item.key());
        !own.empty())
      wrong.add("model." + item.key() + " is not a key of model_type "
                + keys["model_type"].get<std::string>()
                + "; did you mean model." + own + "?");
  model::add_default_sizes(keys);
  auto parsed = model::parse_config(model::json_text(keys),
                                    std::string(source) + ": [model]");
  if (parsed)
    run.model = *parsed;
  else
    wrong.add_whole(parsed.message());
}

void read_section(const std::string& name, const json& section, run_config& run,
                  mistakes& wrong) {
  std::vector<std::string_view> sections{"model", "roles"};
  for (const run_key& k : keys())
    sections.push_back(k.section);
  const bool known = std::ranges::find(sections, name) != sections.end();
  if (!known && !section.is_object())
    return wrong.add("'" + core::shown(name)
                     + "' stands outside a section such as [training]"
                     + meant_key({}, name));
  if (!known)
    return wrong.add("unknown section [" + core::shown(name) + "]"
                     + core::did_you_mean(name, sections));
  if (!section.is_object())
    return wrong.add("[" + name + "] must be a table");
  for (const auto& item : section.items()) {
    const std::string& key_name = item.key();
    auto at = std::ranges::find_if(keys(), [&](const run_key& k) {
      return k.section == name && k.name == key_name;
    });
    const std::string text =
      at == keys().end()
        ? "unknown key " + name + "." + core::shown(key_name)
            + meant_key(name, key_name)
        : std::visit(put_value{run, *at, item.value()}, at->where);
    if (!text.empty())
      wrong.add(at == keys().end() ? text : name + "." + key_name + " " + text);
  }
}

/// [[roles]]: a list of tables with name, where and parameters.
model::status
read_roles(const json& list, std::string_view source, run_config& run) {
  const std::string where = std::string(source) + ": [[roles]] ";
  if (!list.is_array())
    return failure{where + "must be a list of tables"};
  if (list.size() > placements_max)
    return failure{where + "has more than " + std::to_string(placements_max)
                   + " entries"};
  for (const json& item : list) {
    if (!item.is_object())
      return failure{where + "must be a list of tables"};
    role_placement made;
    for (const auto& [key, value] : item.items()) {
      if (std::ranges::count(role_keys(), std::string_view(key),
                             &role_key::name)
          == 0) {
        std::string known;
        for (const role_key& k : role_keys())
          known += (known.empty() ? "" : ", ") + std::string(k.name);
        return failure{where + "has no key '" + core::shown(key)
                       + "': " + known};
      }
      if (key == "parameters") {
        if (!value.is_object())
          return failure{where + "parameters must be a table"};
        made.parameters = model::json_text(value);
      } else if (!value.is_string()) {
        return failure{where + key + " must be a string"};
      } else {
        (key == "name" ? made.name : made.where) = value.get<std::string>();
      }
    }
    if (made.name.empty() || made.name.size() > placement_name_bytes_max
        || made.where.empty() || made.where.size() > 128)
      return failure{where
                     + "needs a name (of at most 32 letters) and where: "
                       "\"every_stage\", \"every_peer\" or a peer's name"};
    static const std::vector<std::string_view> places{"every_peer",
                                                      "every_stage"};
    // No peer has such a name on purpose: the role would run on no peer.
    if (made.where.starts_with("every")
        && std::ranges::find(places, made.where) == places.end())
      return failure{where + made.name + ": where is '"
                     + core::shown(made.where)
                     + "', must be 'every_peer', 'every_stage' or a peer's name"
                     + core::did_you_mean(made.where, places)};
    if (made.parameters.size() > placement_parameters_bytes_max)
      return failure{where + made.name + ": parameters are larger than "
                     + std::to_string(placement_parameters_bytes_max)
                     + " bytes"};
    for (const role_placement& other : run.roles)
      if (other.name == made.name && other.where == made.where)
        return failure{where + "has '" + made.name + "' at " + made.where
                       + " twice"};
    run.roles.push_back(std::move(made));
  }
  return model::done{};
}

} // namespace

model::result<run_config>
parse_run(std::string_view text, std::string_view source) {
  auto parsed = model::parse_json_object<json>(text, source);
  if (!parsed)
    return parsed.why();
  json all = std::move(*parsed);
  if (!all.contains("model"))
    all["model"] = json::object();
  run_config run;
  mistakes wrong(source);
  for (const auto& [name, section] : all.items()) {
    if (name == "model")
      read_model(section, source, run, wrong);
    else if (name != "roles")
      read_section(name, section, run, wrong);
    else if (auto read = read_roles(section, source, run); !read)
      wrong.add_whole(read.message());
  }
  const auto training = all.find("training");
  if (run.model_path.empty()
      && (training == all.end() || !training->contains("seq_len")))
    run.shorten_seq_len(run.model.max_position_embeddings);
  for (const std::string& text : wrong_words(run))
    wrong.add(text);
  if (wrong.none()) // otherwise a mistake would be reported again, as a default
                    // that does not fit
    for (const std::string& text : wrong_together(run))
      wrong.add(text);
  if (!wrong.none())
    return wrong.why();
  return run;
}

model::result<run_config>
parse_written_run(std::string_view text, std::string_view source) {
  auto run = parse_run(text, source);
  if (!run)
    return run;
  const json all = model::parse_json<json>(text);
  const auto data = all.find("data");
  if (data == all.end() || !data->contains("end_of_text")) {
    run->data_end_of_text = false; // as earlier versions read it
    run->data_hidden = true;
  }
  return run;
}

} // namespace shoal::runtime
