#include "visualizer/window.h"

#include <algorithm>
#include <memory>
#include <string>

#include <GLFW/glfw3.h>
#include <fmt/format.h>
#include <imgui.h>
#include <imgui_impl_glfw.h>
#include <imgui_impl_opengl3.h>

#include "core/error.h"
#include "visualizer/app/app.h"
#include "visualizer/app/presets.h"

namespace lockstep {
namespace {

constexpr double kIdleSeconds = 0.25;  ///< between frames when nobody does anything
constexpr int kLiveFrames = 6;         ///< after an event, so that hover and popups settle

struct Glfw {
  Glfw() {
    if (glfwInit() != GLFW_TRUE) {
      throw NotSupportedError("window",
                              "no display; lockstep-view --shot FILE makes pictures without one");
    }
  }
  Glfw(const Glfw&) = delete;
  Glfw& operator=(const Glfw&) = delete;
  ~Glfw() { glfwTerminate(); }
};

struct WindowDeleter {
  void operator()(GLFWwindow* window) const { glfwDestroyWindow(window); }
};
using WindowPtr = std::unique_ptr<GLFWwindow, WindowDeleter>;

WindowPtr make_window(const ViewOptions& options) {
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 3);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  WindowPtr window(glfwCreateWindow(options.width, options.height, "Lockstep", nullptr, nullptr));
  if (window == nullptr) {
    throw NotSupportedError("window", "OpenGL 3.3 is not available here");
  }
  glfwMakeContextCurrent(window.get());
  glfwSwapInterval(1);
  return window;
}

/// ImGui's context and its two backends, in the order in which they have to go.
struct Backends {
  explicit Backends(GLFWwindow* window) {
    ImGui::CreateContext();
    ImGui::GetIO().IniFilename = nullptr;
    ImGui_ImplGlfw_InitForOpenGL(window, true);
    ImGui_ImplOpenGL3_Init("#version 330");
  }
  Backends(const Backends&) = delete;
  Backends& operator=(const Backends&) = delete;
  ~Backends() {
    ImGui_ImplOpenGL3_Shutdown();
    ImGui_ImplGlfw_Shutdown();
    ImGui::DestroyContext();
  }
};

app::Settings settings_for(const ViewOptions& options, const std::string& file) {
  app::Settings settings = app::load_settings(file);
  settings.theme = options.theme.value_or(settings.theme);
  settings.language = options.language.value_or(settings.language);
  settings.scale = options.scale.value_or(settings.scale);
  return settings;
}

void draw_frame(GLFWwindow* window, app::App& app) {
  if (app.prepare()) {
    ImGui_ImplOpenGL3_DestroyFontsTexture();
    ImGui_ImplOpenGL3_CreateFontsTexture();
  }
  ImGui_ImplOpenGL3_NewFrame();
  ImGui_ImplGlfw_NewFrame();
  ImGui::NewFrame();
  app.frame();
  ImGui::Render();
  int width = 0;
  int height = 0;
  glfwGetFramebufferSize(window, &width, &height);
  glViewport(0, 0, width, height);
  glClearColor(0, 0, 0, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  ImGui_ImplOpenGL3_RenderDrawData(ImGui::GetDrawData());
  glfwSwapBuffers(window);
}

void dropped(GLFWwindow* window, int count, const char** paths) {
  if (count > 0) {
    static_cast<app::App*>(glfwGetWindowUserPointer(window))->shell().open(paths[0]);
  }
}

}  // namespace

void run_window(const ViewOptions& options) {
  const Glfw glfw;
  const WindowPtr window = make_window(options);
  const Backends backends(window.get());
  const std::string file = app::settings_path();
  app::App app(settings_for(options, file), file);
  glfwSetWindowUserPointer(window.get(), &app);
  glfwSetDropCallback(window.get(), dropped);
  if (!options.view.empty()) {
    app.shell().show_view(options.view);
  } else if (!options.baseline.empty()) {
    app.shell().show_view("compare");
  }
  if (!options.file.empty()) {
    app.session().open(options.file, options.baseline);
  } else if (options.view == "steps") {  // needs no scenario
    app.session().start(app::preset_scenario(app::presets().front()));
  }
  int drawn = 0;
  std::string title;
  while (!app.shell().wants_to_quit() && (!options.frames || drawn < *options.frames)) {
    if (glfwWindowShouldClose(window.get()) == GLFW_TRUE) {
      glfwSetWindowShouldClose(window.get(), GLFW_FALSE);
      app.shell().quit();  // asks first where edits would be lost
    }
    if (app.shell().title() != title) {
      title = app.shell().title();
      glfwSetWindowTitle(window.get(), title.c_str());
    }
    const bool live = app.session().working() || app.session().playing;
    if (live) {
      glfwPollEvents();
    } else {
      glfwWaitEventsTimeout(kIdleSeconds);
    }
    for (int i = 0; i < (live ? 1 : kLiveFrames); ++i) {
      draw_frame(window.get(), app);
      ++drawn;
      glfwPollEvents();
    }
  }
}

}  // namespace lockstep
