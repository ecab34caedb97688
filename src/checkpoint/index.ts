/**
 * Files of weights: what `import ... from 'heddle/checkpoint'` offers. Nothing here needs a device.
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
