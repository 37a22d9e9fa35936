// Rasteriser: ImGui's draw data into an image, on the CPU: pictures without display and GPU, the
// same bytes on every machine.
//
// Rules as OpenGL's with 8 bits a channel: a pixel is covered when its centre lies inside the
// triangle, or on a top or left edge; positions are snapped to 1/256 pixel; colours and texture
// coordinates are interpolated linearly, the texture by four texels, and blending is
// "source alpha, one minus source alpha".
#pragma once

#include <imgui.h>

#include "visualizer/shot/image.h"

namespace lockstep::shot {

/// Coverage of the font atlas: the texture that all triangles use.
struct Texture {
  const unsigned char* alpha = nullptr;
  int width = 0;
  int height = 0;
};

void rasterise(const ImDrawData& data, const Texture& texture, Image& image);

/// One triangle inside the clip rectangle [x0, x1) x [y0, y1) of whole pixels: for tests.
struct Clip {
  int x0 = 0;
  int y0 = 0;
  int x1 = 0;
  int y1 = 0;
};
void draw_triangle(const ImDrawVert& a,
                   const ImDrawVert& b,
                   const ImDrawVert& c,
                   const Texture& texture,
                   const Clip& clip,
                   Image& image);

}  // namespace lockstep::shot
