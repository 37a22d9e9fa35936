// Commands: each adds itself to the program; when it is the one that was typed, it sets the action.
// One file per command. Actions return the exit code and throw lockstep::Error; main() reports.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace lockstep::cli {

using Action = std::function<int()>;

void add_memory_command(CLI::App& program, Action& action);
void add_plan_command(CLI::App& program, Action& action);
void add_train_command(CLI::App& program, Action& action);
void add_generate_command(CLI::App& program, Action& action);
void add_simulate_command(CLI::App& program, Action& action);
void add_compare_command(CLI::App& program, Action& action);
void add_calibrate_command(CLI::App& program, Action& action);
void add_search_command(CLI::App& program, Action& action);
void add_validate_command(CLI::App& program, Action& action);
void add_models_command(CLI::App& program, Action& action);
void add_clusters_command(CLI::App& program, Action& action);
void add_collective_command(CLI::App& program, Action& action);
void add_trace_command(CLI::App& program, Action& action);
void add_show_command(CLI::App& program, Action& action);
void add_doctor_command(CLI::App& program, Action& action);

}  // namespace lockstep::cli
