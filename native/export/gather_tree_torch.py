"""The texts of beams from what each step chose, as an op of PyTorch: FasterTransformer's gather_tree, as torch.ops.heddle.trace_beams.

    import gather_tree_torch
    texts = gather_tree_torch.gather_tree(words, parents, lengths, end)

words and parents are [steps, sequences, beams] of int32: the word that each beam took at a step, and the beam before the step that it goes on
from, as a place among the beams of its sequence or among all rows. lengths [sequences] of int32 says after how many steps each sequence is
complete; later steps are not read. The result has the shape of words: of each beam of the last step the words on the way to it, and `end`
behind the first `end` and behind the length. Takes twice the logarithm of the steps in launches, on any device, and none waits for the host.
"""
import torch


def gather_tree(words: torch.Tensor, parents: torch.Tensor, lengths: torch.Tensor, end: int) -> torch.Tensor:
    return torch.ops.heddle.trace_beams(words, parents, lengths, end)


def _trace_beams(words: torch.Tensor, parents: torch.Tensor, lengths: torch.Tensor, end: int) -> torch.Tensor:
    steps, _, width = words.shape
    at = torch.arange(steps, device=words.device).view(steps, 1, 1)
    own = torch.arange(width, device=words.device).expand(words.shape)
    # Of each step, where beams behind the next one come from. Behind the length they stay what they are.
    later = torch.cat([parents[1:], parents[:1]]).long() % width
    place = torch.where(at + 1 < torch.clamp(lengths, max=steps).view(1, -1, 1), later, own)
    # Where beams behind the next 2, 4, 8 ... steps come from: one way leads through the other.
    ahead = 1
    while ahead < steps:
        place = torch.cat([torch.gather(place[:-ahead], 2, place[ahead:]), place[-ahead:]])
        ahead *= 2
    found = torch.gather(words, 2, place)
    ends = found == end
    gone = (ends.cumsum(0) - ends.long() > 0) | (at >= lengths.view(1, -1, 1))
    return found.masked_fill(gone, end)


# Other exports of the process may have brought it.
if not hasattr(torch.ops.heddle, "trace_beams"):
    _ops = torch.library.Library("heddle", "FRAGMENT")
    _ops.define("trace_beams(Tensor words, Tensor parents, Tensor lengths, int end) -> Tensor")
    _ops.impl("trace_beams", _trace_beams, "CompositeExplicitAutograd")

    @torch.library.register_fake("heddle::trace_beams", lib=_ops)
    def _(words: torch.Tensor, parents: torch.Tensor, lengths: torch.Tensor, end: int) -> torch.Tensor:
        return torch.empty_like(words)
