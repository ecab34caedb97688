import { greedyStep } from './sampling.js'
export const beamStep = greedyStep
export const beamStepHf = greedyStep
