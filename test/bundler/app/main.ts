// Calls a kernel, whose declaration the bundler puts into the bundle.
import { openDevice, tensor } from 'heddle/runtime'
import { scaled } from './specs/index.js'

const device = await openDevice(process.argv[2] === 'js' ? 'js' : 'simt')
const { y } = await device.call(scaled, { x: tensor('f32', [2, 2], [1, 2, 3, 4]) })
console.log(device.kind, [...y.data].join(' '))
await device.close()
