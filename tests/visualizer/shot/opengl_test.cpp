// The rasteriser against OpenGL: one frame, drawn by ImGui's own backend into a window that is not
// shown, read back and compared. Runs under Xvfb; where there is no display it says so.
#include <filesystem>
#include <memory>
#include <string>

#include <GLFW/glfw3.h>
#include <imgui_impl_opengl3.h>

#include "tests/support/catch.h"
#include "tests/visualizer/support/pictures.h"
#include "visualizer/shot/headless.h"

using namespace lockstep;
namespace fs = std::filesystem;

namespace {

constexpr int kWidth = 1000;
constexpr int kHeight = 640;
// llvmpipe samples textures with fewer bits than the rasteriser: letters' edges differ a little.
constexpr double kMostMean = 0.2;   ///< of 255
constexpr double kMostFar = 0.002;  ///< share of pixels that are off by more than test::kFar

struct Glfw {
  bool started = glfwInit() == GLFW_TRUE;
  Glfw() = default;
  Glfw(const Glfw&) = delete;
  Glfw& operator=(const Glfw&) = delete;
  ~Glfw() {
    if (started) {
      glfwTerminate();
    }
  }
};

struct WindowDeleter {
  void operator()(GLFWwindow* window) const { glfwDestroyWindow(window); }
};

std::unique_ptr<GLFWwindow, WindowDeleter> hidden_window() {
  glfwWindowHint(GLFW_VISIBLE, GLFW_FALSE);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  return std::unique_ptr<GLFWwindow, WindowDeleter>(
      glfwCreateWindow(kWidth, kHeight, "test", nullptr, nullptr));
}

shot::Image drawn_by_opengl() {
  glViewport(0, 0, kWidth, kHeight);
  glClearColor(0, 0, 0, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  shot::Image upside_down(kWidth, kHeight, {});
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, kWidth, kHeight, GL_RGBA, GL_UNSIGNED_BYTE, upside_down.pixels.data());
  shot::Image image(kWidth, kHeight, {});
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      image.at(x, y) = upside_down.at(x, kHeight - 1 - y);
    }
  }
  return image;
}

void compare(const std::string& view, const std::string& preset, ui::ThemeId theme) {
  app::Settings settings;
  settings.theme = theme;
  shot::Headless headless(kWidth, kHeight, settings);
  headless.frame();
  REQUIRE(ImGui_ImplOpenGL3_Init("#version 330"));
  ImGui_ImplOpenGL3_NewFrame();  // uploads the atlas
  headless.app().session().open(preset);
  headless.settle();
  headless.app().shell().show_view(view);
  headless.settle();
  const shot::Image ours = headless.picture();
  const shot::Image theirs = drawn_by_opengl();
  ImGui_ImplOpenGL3_Shutdown();
  const test::Difference difference = test::difference(theirs, ours);
  REQUIRE(difference.same_size);
  INFO(view << ": mean " << difference.mean << ", far " << difference.far << ", worst "
            << difference.worst);
  const bool alike = difference.mean <= kMostMean && difference.far <= kMostFar;
  if (!alike) {
    const fs::path folder(LOCKSTEP_PICTURES);
    fs::create_directories(folder);
    shot::save_png((folder / (view + "_opengl.png")).string(), theirs);
    shot::save_png((folder / (view + "_rasteriser.png")).string(), ours);
    shot::save_png((folder / (view + "_difference.png")).string(), difference.picture);
    WARN("see " << folder.string());
  }
  CHECK(difference.mean <= kMostMean);
  CHECK(difference.far <= kMostFar);
}

}  // namespace

TEST_CASE("OpenGL and the rasteriser draw the same timeline, memory and budget") {
  const Glfw glfw;
  if (!glfw.started) {
    WARN("no display: not compared");
    return;
  }
  const auto window = hidden_window();
  if (window == nullptr) {
    WARN("no OpenGL 3.3: not compared");
    return;
  }
  glfwMakeContextCurrent(window.get());
  compare("timeline", "laptop", ui::ThemeId::kDark);
  compare("memory", "fsdp", ui::ThemeId::kLight);
  compare("budget", "ddp", ui::ThemeId::kContrast);
}
