// Mailbox: messages that have come for one member and were not yet asked for, and receivers that
// wait for messages that have not yet come. Matched by (source, tag), in order of sending.
//
// A sender never waits for its receiver: it copies straight into the output of one that waits, else
// into a buffer of the mailbox, kept for reuse.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/communicator.h"
#include "executor/waker.h"

namespace lockstep::exec {

class Mailbox {
 public:
  /// A receiver that waits; lies on its stack.
  struct Receiver {
    int source = 0;
    Transfer transfer;
    std::atomic<bool> done{false};
  };

  /// Brings a message of member `source`. Returns what is wrong with it (the receiver wants another
  /// count or type), or "".
  std::string put(int source, const Transfer& send);
  /// Takes the message if it is there: true. Else enrols the receiver, whose `done` will be set,
  /// with a notify() of waker(), once its output is written. `wrong` as put().
  bool take(Receiver& receiver, std::string& wrong);
  /// The receiver gives up: false if its output is being written right now, so `done` will be set.
  bool withdraw(const Receiver& receiver);
  Waker& waker() { return waker_; }

 private:
  struct Message {
    int source = 0;
    Transfer transfer;
    std::unique_ptr<std::byte[]> data;
    std::int64_t capacity = 0;
  };

  Message buffer_of(std::int64_t bytes);

  std::mutex mutex_;
  std::vector<Message> messages_;  ///< in order of arrival
  std::vector<Message> spare_;     ///< empty buffers
  std::vector<Receiver*> receivers_;
  Waker waker_;
};

}  // namespace lockstep::exec
