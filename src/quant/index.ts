/** Calibration and quantisation: the interface for pipelines and the command line. */

export {
  channelMaxima,
  givenMaxima,
  type QuantisedWeights,
  quantiseWeights,
  type WeightMatrix,
} from '../runtime/quantise_weights.js'
export { formatAmaxList, parseAmaxList } from './amax_list.js'
export {
  type ChannelMaxima,
  expectChannels,
  formatChannels,
  parseChannels,
  readChannels,
} from './channels.js'
export { magnitude, type Thresholds, thresholdChart } from './chart.js'
export { type CalibrationModel, type CollectOptions, collect } from './collect.js'
export { type Histogram, merge } from './histogram.js'
export { type ModelIdentity, modelIdentity } from './identity.js'
export { channelsOf, observeChannels } from './observe.js'
export { expectModel, formatScales, parseScales, readScales, type Scales } from './scales.js'
export { type PerSite, perSite, type Site, sites } from './sites.js'
export { type Smoothing, smoothWeights, usualAlpha } from './smooth.js'
export { defaultPercentile, type Method, methodNames, threshold } from './thresholds.js'
export { type Matrix, matrices, type WeightMaxima } from './weight_maxima.js'
