"""Texts of beams from the words of each step, as an op of PyTorch: FasterTransformer's gather_tree, as torch.ops.heddle.trace_beams.

    import gather_tree_torch
    texts = gather_tree_torch.gather_tree(words, parents, lengths, end)

words and parents are [steps, sequences, beams] of int32: the word of each beam at a step, and the beam before the step that it continues, as
an index among the beams of its sequence or among all rows. lengths [sequences] of int32 has the number of steps after which each sequence is
complete; later steps are not read. The result has the shape of words: for each beam of the last step the words on the path to it, and `end`
after the first `end` and after the length. Takes twice the logarithm of the steps in launches, on any device, without synchronising the host.
"""
import torch


def gather_tree(words: torch.Tensor, parents: torch.Tensor, lengths: torch.Tensor, end: int) -> torch.Tensor:
    return torch.ops.heddle.trace_beams(words, parents, lengths, end)


def _trace_beams(words: torch.Tensor, parents: torch.Tensor, lengths: torch.Tensor, end: int) -> torch.Tensor:
    steps, _, width = words.shape
    at = torch.arange(steps, device=words.device).view(steps, 1, 1)
    own = torch.arange(width, device=words.device).expand(words.shape)
    # For each step, the beams that later beams continue. After the length they stay unchanged.
    later = torch.cat([parents[1:], parents[:1]]).long() % width
    place = torch.where(at + 1 < torch.clamp(lengths, max=steps).view(1, -1, 1), later, own)
    # The same for distances of 2, 4, 8 ... steps, each from composing the previous one with itself.
    ahead = 1
    while ahead < steps:
        place = torch.cat([torch.gather(place[:-ahead], 2, place[ahead:]), place[-ahead:]])
        ahead *= 2
    found = torch.gather(words, 2, place)
    ends = found == end
    gone = (ends.cumsum(0) - ends.long() > 0) | (at >= lengths.view(1, -1, 1))
    return found.masked_fill(gone, end)


# Another export of the process may have defined it.
if not hasattr(torch.ops.heddle, "trace_beams"):
    _ops = torch.library.Library("heddle", "FRAGMENT")
    _ops.define("trace_beams(Tensor words, Tensor parents, Tensor lengths, int end) -> Tensor")
    _ops.impl("trace_beams", _trace_beams, "CompositeExplicitAutograd")

    @torch.library.register_fake("heddle::trace_beams", lib=_ops)
    def _(words: torch.Tensor, parents: torch.Tensor, lengths: torch.Tensor, end: int) -> torch.Tensor:
        return torch.empty_like(words)
