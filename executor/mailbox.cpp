#include "executor/mailbox.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace lockstep::exec {

namespace {

std::int64_t bytes_of(const Transfer& transfer) {
  return transfer.elements * size_of(transfer.dtype);
}

void copy_bytes(void* to, const void* from, std::int64_t bytes) {
  if (bytes > 0) {
    std::memmove(to, from, static_cast<std::size_t>(bytes));
  }
}

std::string mismatch(const Transfer& send, const Transfer& recv) {
  if (send.dtype == recv.dtype && send.elements == recv.elements) {
    return {};
  }
  return fmt::format("tag {}: send of {} {} (operation {}), recv of {} {} (operation {})",
                     send.tag,
                     send.elements,
                     name_of(send.dtype),
                     send.label.index,
                     recv.elements,
                     name_of(recv.dtype),
                     recv.label.index);
}

}  // namespace

Mailbox::Message Mailbox::buffer_of(std::int64_t bytes) {
  auto best = spare_.end();
  for (auto each = spare_.begin(); each != spare_.end(); ++each) {
    if (each->capacity >= bytes && (best == spare_.end() || each->capacity < best->capacity)) {
      best = each;
    }
  }
  if (best != spare_.end()) {
    Message message = std::move(*best);
    spare_.erase(best);
    return message;
  }
  Message message;
  message.data = std::unique_ptr<std::byte[]>(new std::byte[static_cast<std::size_t>(bytes)]);
  message.capacity = bytes;
  return message;
}

std::string Mailbox::put(int source, const Transfer& send) {
  std::unique_lock lock(mutex_);
  const auto waiting =
      std::find_if(receivers_.begin(), receivers_.end(), [&](const Receiver* each) {
        return each->source == source && each->transfer.tag == send.tag;
      });
  if (waiting == receivers_.end()) {
    Message message = buffer_of(bytes_of(send));
    message.source = source;
    message.transfer = send;
    copy_bytes(message.data.get(), send.in, bytes_of(send));
    messages_.push_back(std::move(message));
    return {};
  }
  Receiver* const receiver = *waiting;
  std::string wrong = mismatch(send, receiver->transfer);
  if (!wrong.empty()) {
    return wrong;
  }
  receivers_.erase(waiting);
  lock.unlock();
  copy_bytes(receiver->transfer.out, send.in, bytes_of(send));
  receiver->done.store(true);
  waker_.notify();
  return {};
}

bool Mailbox::take(Receiver& receiver, std::string& wrong) {
  std::unique_lock lock(mutex_);
  const auto found = std::find_if(messages_.begin(), messages_.end(), [&](const Message& each) {
    return each.source == receiver.source && each.transfer.tag == receiver.transfer.tag;
  });
  if (found == messages_.end()) {
    receivers_.push_back(&receiver);
    return false;
  }
  wrong = mismatch(found->transfer, receiver.transfer);
  if (!wrong.empty()) {
    return true;
  }
  Message message = std::move(*found);
  messages_.erase(found);
  lock.unlock();
  copy_bytes(receiver.transfer.out, message.data.get(), bytes_of(receiver.transfer));
  lock.lock();
  spare_.push_back(std::move(message));
  return true;
}

bool Mailbox::withdraw(const Receiver& receiver) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(receivers_.begin(), receivers_.end(), &receiver);
  if (found == receivers_.end()) {
    return false;
  }
  receivers_.erase(found);
  return true;
}

}  // namespace lockstep::exec
