/** The C++ example of an exported generator: prompts of token ids from standard input, a line each; texts to standard output. */
import type { LoweredGenerator } from './generator.js'

export const generatorExample = ({
  parts: { name },
}: LoweredGenerator): string => `// Generates texts: example WEIGHTS [option=number ...] < prompts. A line of standard input is a prompt, ids with blanks between them. A line of the
// output is a text: the number of its prompt, how it ended (0: an end id, 1: the limit, 2: stopped), its sum of log-probabilities, and its ids.
#include <cstdio>
#include <iostream>
#include <sstream>

#include "${name}.hpp"

namespace {

void set(${name}::Options& options, const std::string& option, const std::string& value) {
  const auto whole = [&] { return static_cast<uint32_t>(std::stoul(value)); };
  if (option == "choice") options.choice = std::stoi(value);
  else if (option == "max_new_tokens") options.max_new_tokens = whole();
  else if (option == "temperature") options.temperature = std::stof(value);
  else if (option == "top_k") options.top_k = whole();
  else if (option == "top_p") options.top_p = std::stof(value);
  else if (option == "min_p") options.min_p = std::stof(value);
  else if (option == "seed") options.draw_seeds.push_back(std::stoull(value));
  else if (option == "beams") options.beams = whole();
  else if (option == "returned") options.returned = whole();
  else if (option == "rule") options.rule = std::stoi(value);
  else if (option == "diversity_rate") options.diversity_rate = std::stof(value);
  else if (option == "length_penalty") options.length_penalty = std::stof(value);
  else if (option == "early_stopping") options.early_stopping = std::stoi(value);
  else throw std::runtime_error("there is no option " + option);
}

void run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) throw std::runtime_error("usage: example WEIGHTS [option=number ...] < prompts");
  ${name}::Options options;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const size_t at = arguments[i].find('=');
    set(options, arguments[i].substr(0, at), at == std::string::npos ? "" : arguments[i].substr(at + 1));
  }
  std::vector<std::vector<int32_t>> prompts;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    prompts.emplace_back();
    for (int32_t id = 0; words >> id;) prompts.back().push_back(id);
  }
  ${name}::Generator generator(arguments[0]);
  const auto texts = generator.generate(prompts, options);
  for (size_t prompt = 0; prompt < texts.size(); ++prompt) {
    for (const ${name}::Text& text : texts[prompt]) {
      std::printf("%zu %d %.9g", prompt, text.finish, static_cast<double>(text.log_probability));
      for (const int32_t id : text.ids) std::printf(" %d", id);
      std::printf("\\n");
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(std::vector<std::string>(argv + 1, argv + argc));
    return 0;
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "%s\\n", exception.what());
    return 1;
  }
}
`
