// A device of torch's PrivateUse1 whose one stream is a thread: a launch returns at once.
// Only what torch.accelerator and torch.Event ask of a backend; it computes nothing.

#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kType = c10::DeviceType::PrivateUse1;

struct Queue {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> jobs;
  bool started = false, busy = false;

  void put(std::function<void()> job) {
    std::lock_guard<std::mutex> lock(mutex);
    if (!started) {
      started = true;
      std::thread([this] { serve(); }).detach();
    }
    jobs.push_back(std::move(job));
    changed.notify_all();
  }

  void serve() {
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return !jobs.empty(); });
      auto job = std::move(jobs.front());
      jobs.pop_front();
      busy = true;
      lock.unlock();
      job();
      lock.lock();
      busy = false;
      changed.notify_all();
    }
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return jobs.empty() && !busy; });
  }
};

Queue& queue() {
  static auto* made = new Queue();
  return *made;
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device) const override { return getDevice(); }
  c10::Device getDevice() const override { return {kType, 0}; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const override {
    return c10::Stream(c10::Stream::DEFAULT, getDevice());
  }
  c10::Stream exchangeStream(c10::Stream) const override { return getStream(getDevice()); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void synchronizeDevice(const c10::DeviceIndex) const override { queue().wait(); }

  void record(
      void** event, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag)
      const override {
    TORCH_CHECK(!std::getenv("SIMULATED_UNTIMED"), "a simulated stopwatch stands still");
    if (*event == nullptr) *event = new Clock::time_point();
    auto* at = static_cast<Clock::time_point*>(*event);
    queue().put([at] { *at = Clock::now(); });
  }
  void destroyEvent(void* event, const c10::DeviceIndex) const noexcept override {
    queue().wait();
    delete static_cast<Clock::time_point*>(event);
  }
  bool queryEvent(void*) const override {
    queue().wait();
    return true;
  }
  double elapsedTime(void* first, void* last, const c10::DeviceIndex) const override {
    auto between = *static_cast<Clock::time_point*>(last) - *static_cast<Clock::time_point*>(first);
    return std::chrono::duration<double, std::milli>(between).count();
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct Memory final : c10::DeviceAllocator {
  c10::CachingDeviceAllocator::DeviceStats stats;

  void take(int64_t bytes) {
    stats.allocated_bytes[0].increase(bytes);
    stats.reserved_bytes[0].increase(2 * bytes);
  }
  void give_back(int64_t bytes) { stats.allocated_bytes[0].decrease(bytes); }

  bool initialized() override { return true; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override {
    return stats;
  }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {
    stats.allocated_bytes[0].reset_peak();
    stats.reserved_bytes[0].reset_peak();
  }
  c10::DataPtr allocate(size_t bytes) override {
    return {std::malloc(bytes), nullptr, &std::free, {kType, 0}};
  }
  void copy_data(void*, const void*, std::size_t) const override {}
};

Memory memory;
const bool kCounted = [] {
  if (!std::getenv("SIMULATED_UNCOUNTED")) c10::SetAllocator(kType, &memory);
  return true;
}();

}  // namespace

extern "C" void launch(double seconds) {
  queue().put([seconds] {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  });
}
extern "C" void take(int64_t bytes) { memory.take(bytes); }
extern "C" void give_back(int64_t bytes) { memory.give_back(bytes); }
