// Operands: what each work reads and writes, in the order of its views. The contract between the
// planner, the value check and the executor; nothing to include at run time.
//
// Notation: m tokens (or rows), n output features, k input features, all on this rank. `x?` = only
// when the module has it. Weights appear in the module's parameter order. [in place] = the output
// view is the named input. Shapes are Operation::shape extents. A gradient output with flag
// kAccumulate is added to what the buffer holds.
//
// clang-format off
//   work                 inputs                                  outputs                            shape
//   kLoadBatch           -                                       tokens? | x?, labels?              {batch, seq}
//   kEmbedding           tokens, weight                          y (partial over tp if the weight   {m, rows, h}
//                                                                is cut by rows)
//   kEmbeddingGrad       dy, tokens                              dweight                            {m, rows, h}
//   kPosition            x, weight                               x [in place]                       {m, rows, h}
//   kPositionGrad        dy                                      dweight                            {m, rows, h}
//   kMatmul              x, weight..., bias...                   y                                  {m, n, k, groups}
//                        (several weights: y is their outputs side by side; groups = experts)
//   kMatmulGradInput     dy, weight...                           dx                                 {m, n, k, groups}
//   kMatmulGradWeight    dy, x                                   dweight..., dbias...               {m, n, k, groups}
//   kBias                y, bias                                 y [in place]                       {m, n}
//   kBiasGrad            dy                                      dbias                              {m, n}
//   kNorm                x, weight, bias?                        y, statistics                      {m, h}
//   kNormGrad            dy, x, statistics, weight               dx, dweight, dbias?                {m, h}
//                        (head norm: x is the fused qkv, weights q and k, y likewise)
//   kRope, kRopeGrad     x (fused qkv)                           x [in place]                       {batch, seq, a, k, dh}
//   kAttention           qkv                                     y, probs, mask?, dropped?          {batch, seq, a, k, dh}
//   kAttentionGrad       dy, qkv, probs, mask?, dropped?         dqkv                               {batch, seq, a, k, dh}
//   kFlashAttention      qkv                                     y, lse                             {batch, seq, a, k, dh}
//   kFlashAttentionGrad  dy, qkv, y, lse                         dqkv                               {batch, seq, a, k, dh}
//   kGelu, kRelu         x                                       y                                  {m, f}
//   kGeluGrad, ...       dy, x                                   dx                                 {m, f}
//   kSwiGlu              gate_up (2f wide)                       y (f wide)                         {m, f}
//   kSwiGluGrad          dy, gate_up                             dgate_up                           {m, f}
//   kDropout             x                                       y, mask                            {m, h}
//   kDropoutGrad         dy, mask                                dx                                 {m, h}
//   kAdd                 a, b                                    a + b (may be in place on a)       {n}
//   kScale               x, factor [1]?                          x * factor or scalar [in place]    {n}
//   kZero                -                                       x                                  {n}
//   kCast                x                                       y (other dtype)                    {n}
//   kPack                x...                                    y: the inputs side by side, cast   {n}
//                                                                to y's dtype, times the scalar
//   kPack by layout      whole parameters (or gradients), each   y: the slices of all coordinates   {n}
//                        named by its buffer's parameter         side by side; padding is zero
//   kUnpack              x                                       y...: the reverse; by layout each  {n}
//                                                                output takes the entry of its
//                                                                buffer's parameter, padding skipped
//                        (coordinates of a layout run over Axis::kData, or over both data axes)
//   kBnSums              x                                       sums (fp32: sum, sum of squares, count)
//   kBnApply             x, sums, weight, bias, running          y, running [in place]              {m, c}
//                        (evaluate: x, weight, bias, running -> y, by the running statistics)
//   kBnGradSums          dy, x, sums                             gsums                              {m, c}
//   kBnGradApply         dy, x, sums, local gsums, global        dx, dweight, dbias                 {m, c}
//                        gsums, weight (dweight and dbias from the local sums, dx from the global
//                        ones, the same buffer unless statistics are synchronised)
//   kRoute               logits                                  weights, expert ids                {m, experts, top}
//   kRouteGrad           dweights, logits, expert ids            dlogits                            {m, experts, top}
//   kDispatch            x, expert ids                           rows by expert                     {m, h, top}
//   kDispatchGrad        drows, expert ids                       dx                                 {m, h, top}
//   kCombine             rows, weights, expert ids               y                                  {m, h, top}
//   kCombineGrad         dy, rows, weights, expert ids           drows, dweights                    {m, h, top}
//   kLossLocalMax        logits                                  max [m]                            {m, local vocab, valid vocab}
//   kLossLocalSums       logits, max, labels                     sum of exp [m], target logit [m]   the same
//   kLossFinish          logits, max, sums, target, labels,      loss [1] (+=),                     the same
//                        scaler state?, token count?             logits -> dlogits [in place]
//                        (loss and dlogits are means over the micro-batch's tokens times the scalar,
//                        or sums divided by the token count; dlogits also times the loss scale;
//                        phase evaluate: loss only)
//   kUnscaleAndCheck     gradients..., then the scaler state     flag [1] (1 if any is inf or NaN), gradients [in place]
//   kSumSquares          gradients...                            sum [1] fp64 (+=)
//                        (the inputs one after the other are this coordinate's buffer of the layout;
//                        an entry counts only where the coordinates on its norm_axes are 0)
//   kClipCoefficient     sum [1]                                 min(1, c / (sqrt(sum) + 1e-6))
//   kScalerUpdate        flag                                    scaler state [in place]
//   kSgd, kMomentum,     parameter, gradient, state...           parameter, state... [in place], then
//   kAdamW, kAdamW8bit                                           the compute parameter? (parameter =
//                                                                master copy where there is one)
//   kInitialize          -                                       x: by parameter id or layout, seeded; {n, first, last}
//                        else numbers: 0, but the scalar in elements [first, last)
//   kUsedMap             -                                       int32 map [parameters]
//   kCountTokens         -                                       count [1] of the step's tokens here
//   kReadScalar          x [1]                                   - (host reads it)
//   kDescribeModel       -                                       int64 vector (counts, sizes, strides)
//   kExpectIssued        -                                       - (host: all kWhenReady operations of the
//                                                                previous step were issued, else error)
//   kWriteShard          x...                                    - (host: boxes by layout; statistics have none)
//   kCommit              x?                                      - (host: manifest rename)
// clang-format on
//
// Collectives: one input and one output view; where a program belongs to the root or to the others
// alone, scatter and broadcast have an input, and gather an output, only at the root. In place: the
// output view is the input view (all_reduce, broadcast) or the input view is this rank's slice of
// the output buffer (all_gather), or the output is this rank's slice of the input buffer
// (reduce_scatter). `elements` is the count each member contributes or receives: of the shard for
// all_gather and reduce_scatter (so the whole buffer is members x elements), of the whole message
// for the others. Reduction kAverage divides by the group's size. A send has one input, a recv one
// output.
#pragma once
