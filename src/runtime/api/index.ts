/**
 * Public runtime API: runs ops, graphs and programs on a device. Importing it loads neither the addon nor a compiler.
 *
 * @module heddle/runtime
 */
export { HeddleError } from '../../errors.js'
export type { DType } from '../../ir/dtype.js'
export type { DeviceKind, DeviceName } from '../device.js'
export type { NativeDeviceInfo as DeviceInfo } from '../native.js'
export type { AnyOp, AnyTensor, CallInputs, CallOptions, CallResult } from './call_types.js'
export type { DeviceTensor } from './device_tensor.js'
export type { CompileProgress, Device, OpenOptions, SkippedDevice, UploadOptions } from './device_types.js'
export { bf16, type Float8Type, f8e4m3, f8e5m2, f16, type HalfType } from './half.js'
export type { LoadOptions, Model, ModelRunOptions, ModelState, ProgramLoadOptions, StateOption } from './model_types.js'
export { openDevice } from './open_device.js'
export { type Tensor, type TensorArrays, tensor, toNumbers, zeros } from './tensor.js'
