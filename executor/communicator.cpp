#include "executor/communicator.h"

namespace lockstep::exec {

std::string_view name_of(Algorithm algorithm) {
  constexpr std::string_view kNames[] = {"auto", "direct", "ring", "tree"};
  return kNames[static_cast<std::size_t>(algorithm)];
}

std::string_view name_of(const Transfer& transfer) {
  return transfer.kind == OperationKind::kCollective ? name_of(transfer.collective)
                                                     : name_of(transfer.kind);
}

std::uint64_t Communicator::note(const Transfer& transfer) {
  issued_.push_back({transfer.kind,
                     transfer.collective,
                     transfer.reduction,
                     transfer.dtype,
                     transfer.peer,
                     transfer.tag,
                     transfer.elements});
  return transfer.kind == OperationKind::kCollective ? collectives_++ : messages_++;
}

void Communicator::issue(Device& device, StreamId stream, const Transfer& transfer) {
  launch(device, stream, transfer, note(transfer));
}

void Communicator::run(const Transfer& transfer) {
  execute(transfer, note(transfer));
}

void Communicator::launch(Device& device,
                          StreamId stream,
                          const Transfer& transfer,
                          std::uint64_t sequence) {
  device.enqueue(stream, make_task([this, transfer, sequence] { execute(transfer, sequence); }));
}

}  // namespace lockstep::exec
