/**
 * Files of weights: the exports of `heddle/checkpoint`. Nothing here needs a device.
 *
 * @module heddle/checkpoint
 */
export {
  type Checkpoint,
  type CheckpointTensor,
  type FloatTensorType,
  type MetadataValue,
  openCheckpoint,
  type ReadOptions,
} from './opened.js'
