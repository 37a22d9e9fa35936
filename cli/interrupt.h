// Interrupt: Ctrl-C as a question. While it lives, SIGINT and SIGTERM set a flag instead of ending
// the program; a second one ends it at once.
#pragma once

namespace lockstep::cli {

class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;

 private:
  void (*old_int_)(int);
  void (*old_term_)(int);
};

}  // namespace lockstep::cli
