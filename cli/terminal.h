// Terminal: what stdout and stderr can show, and writing to them. Data goes to stdout; progress and
// errors go to stderr.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

namespace lockstep::cli {

/// What stdout can show. Colour needs a terminal that is not "dumb" and no NO_COLOR; characters
/// beyond ASCII need a UTF-8 locale.
struct Terminal {
  bool colour = false;
  bool utf8 = false;
};
Terminal stdout_terminal();

/// Columns of the terminal; 100 where stdout is none.
int terminal_width();

/// Writes all of it to stdout. False when the reader has gone away (a closed pipe), which is its
/// right: the caller stops and ends with success. NotSupportedError for other failures.
bool print(std::string_view text);

/// Collects output and prints it piece by piece, so that large listings need little memory.
class Printer {
 public:
  Printer() = default;
  Printer(const Printer&) = delete;
  Printer& operator=(const Printer&) = delete;
  /// False when the reader has gone away.
  bool add(std::string_view text);
  bool finish();

 private:
  std::string pending_;
  bool open_ = true;
};

/// While it lives: after a second, a line on stderr says what takes so long, if that is a terminal.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void run();

  std::string what_;
  bool done_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread thread_;
};

}  // namespace lockstep::cli
