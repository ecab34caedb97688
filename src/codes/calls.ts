/** Error codes of calls, runs and devices: arguments of kernels, graphs and programs, and their devices. */
import { texts } from './text.js'

export const callCodes = texts({
  'addon.load':
    'The native addon cannot be loaded. | It was built for another Node or C library, or is damaged. | Build it again with heddle build, or install the package again.',
  'addon.missing':
    'The native addon is not built. | Nothing has been built yet, or the folder of HEDDLE_NATIVE has none. | Run heddle build, with a C++ compiler and CMake installed.',
  'addon.version':
    'The native addon is from another version of heddle. | HEDDLE_NATIVE names an older build, or an old copy remained after an update. | Build it again with heddle build.',
  'bind.attr':
    'A kernel of a graph has an attribute without a finite value. | The attribute was not given, or was computed as NaN. | Give a finite number for it.',
  'bind.buffer':
    'A kernel needs a buffer that its node does not have. | The generated source is out of date with the specs. | Run heddle gen again.',
  'bind.dim':
    'A dimension of a kernel has no size or two sizes. | The given tensors disagree, or no tensor has the dimension. | Give tensors whose shapes agree.',
  'bind.extent':
    'A dimension has a size that the kernel was not compiled for, or that facts of its op exclude. | A fixed size, such as a head size, differs, or the size is not a multiple that a fact of the op states. | Use a size that the message lists, or pad to it.',
  'bind.kernel':
    'A step of a graph has no kernel. | It was not generated for this storage type. | Run heddle gen, or use a type that the ops declare.',
  'buffer.bytes':
    'The number of bytes is not a multiple of the element size. | The data is truncated, or has another storage type. | Give complete data of the declared type.',
  'buffer.values':
    'Values are in another kind of array than the storage type needs. | A plain or wrong typed array is given for encoded elements. | Use the typed array that the message names.',
  'call.alias':
    'One device tensor is given for two inputs, one of which is updated in place. | The same tensor is passed under two names. | Upload it twice.',
  'call.attrs':
    'An attribute of a call is unknown or has an invalid value. | A misspelt name, NaN, or a fraction for an integer attribute. | Give finite numbers for attributes that the op declares.',
  'call.data':
    'The data of a tensor given to a call does not match its type or shape. | Another kind of array, or another number of elements. | Make it with tensor(dtype, shape, values), which converts numbers.',
  'call.dims':
    'A dimension of a call is unknown, missing or not a size. | No input has it and no fact of the op determines it. | Pass it: call(op, inputs, { dims: { k: 4 } }).',
  'call.dtype':
    'A tensor has a storage type that the op does not accept. | Two inputs of one type parameter differ, or nothing determines the type of an output. | Convert with tensor(dtype, shape, toNumbers(t)), or pass { dtype }.',
  'call.extent':
    'A dimension has two sizes, or one that no kernel is compiled for. | The shapes of two inputs disagree, or a size contradicts facts of the op. | Correct the shapes, or pad to a size that the hint names.',
  'call.input':
    'An input of a call is missing, unknown, or not given in an object. | A misspelt key, or positional arguments. | Write call(op, { x, gamma }) with every input by name.',
  'call.kernel':
    'No kernel was generated for this call. | The op does not declare the storage type, or generated/ is older than the op. | Declare the type, and run heddle gen.',
  'call.layout':
    'A device tensor has another layout than the op reads. | It is the output of an op that stores another layout. | Read it back and pass the host tensor, which is converted on upload.',
  'call.op':
    'The first argument of call is not an op, or states a type that it cannot have. | A function or a name is given instead of the result of op(...). | Import the constant that op(...) returned.',
  'call.option':
    'A call has an unknown option, or one of the wrong kind. | The option is misspelt and would be ignored. | Write one that the hint lists.',
  'call.rank':
    'A tensor has another number of dimensions than the op declares. | A leading or trailing dimension of 1 is missing or too many. | Give the same data with the shape that the message names.',
  'call.shape':
    'The shape of a tensor given to a call is not a list of sizes. | An extent is missing, negative or a fraction. | Give integers from 0.',
  'call.stale':
    'The generated kernel belongs to another declaration of the op. | The op was edited after heddle gen, or another op has its name. | Run heddle gen; kernels are compiled when they are called. Rename one of two ops with the same name.',
  'call.tensor':
    'The value given as an input is not a tensor. | An array or a number is given instead of a tensor. | Make it with tensor(dtype, shape, data).',
  'call.value':
    'A kernel cannot compute with an element. | It is an integer beyond int32; kernels index and count in 32 bits. | Keep integers between -2^31 and 2^31 - 1.',
  'device.aborted': 'A run was cancelled. | Its AbortSignal fired. | Start it again if that was not meant.',
  'device.closed':
    'A device is used after it was closed. | close() was called, or the scope that closes it ended. | Open another with openDevice.',
  'device.error':
    'The driver reported an error. | A fault of an earlier kernel, a lost GPU, or a driver that does not fit. | Run it on simt, which names the kernel; then see nvidia-smi and heddle doctor.',
  'device.fault':
    'A kernel did something that is not allowed. | It read or wrote out of bounds, a barrier was not reached by all threads, or threads raced. | The message names kernel and tensor: check ids and offsets given, then heddle check and heddle repro.',
  'device.int8':
    'The GPU does not support the int8 matmuls that the plan uses. | Its compute capability is older than the message says. | Choose a plan of floats.',
  'device.invalid':
    'A device call has invalid arguments. | Sizes, offsets or buffers do not fit; often a tensor belongs to another device. | Correct the argument that the message names.',
  'device.kind':
    'There is no device of that name. | The devices are js, simt and cuda; cuda:1 is the second GPU. Verbs that time or test compiled kernels do not take js. | Write one of these, or leave it out.',
  'device.memory':
    'The device is out of memory. | The batch, the caches or the weights take more than is free. | Use a smaller batch, shorter sequences, int8 weights, or close other programs.',
  'device.option':
    'openDevice has no such option, or its value is of the wrong kind. | The option is misspelt and would be ignored. | Write one that the hint lists.',
  'device.plugin':
    'The plugin of a device is not built. | Only the other device has been built so far. | Run heddle build --target with the device.',
  'device.root': 'The folder of the project does not exist. | root names no folder. | Pass an existing folder to openDevice.',
  'device.unavailable':
    'The machine has no such device. | No GPU, fewer GPUs than the given number, no driver, or a driver older than the CUDA that heddle was built with. | See heddle doctor, or use simt.',
  'library.kernel':
    'A kernel library does not contain a requested kernel. | The source was not generated, or the library was built before it. | Run heddle gen, then heddle build.',
  'library.missing':
    'There is no kernel library for the device. | Nothing was built ahead, and this installation does not compile. | Run heddle build --target with the device.',
  'library.stale':
    'A kernel in the library does not match the manifest. | Source or manifest changed after the build. | Run heddle gen, then heddle clean, and build again.',
  'load.attrs':
    'Attributes given to load are unknown or not numbers. | A misspelt name, or a value that is not finite. | Give finite numbers under names that the graph declares.',
  'load.config':
    'A configuration is given to a graph or program that takes none, or is not an object. | Only programs made by a function have a configuration. | Leave it out, or pass an object with the fields of the program.',
  'load.conversions':
    'The option conversions is not a list of conversions. | A single conversion, or another form. | Give a list of { op, scales }.',
  'load.data':
    'The data of a weight does not match its type or shape. | Another kind of array, or another number of elements. | Make it with tensor(dtype, shape, values), which converts numbers.',
  'load.dims':
    'A dimension belongs to no weight, or is not a size. | A misspelt name, or a size that a weight contradicts. | Give integers for dimensions that the hint lists.',
  'load.dtype':
    'A graph cannot be loaded in the storage type. | Its ops do not declare it, weights have several types, or it is not a storage type. | Pass { dtype } with a type that the message lists, or convert the weights.',
  'load.extent':
    'A dimension of weights has two sizes, or one that is not possible. | Two weights disagree, or belong to another configuration. | Give weights of one model.',
  'load.graph':
    'The first argument of load is not a graph or program. | A plan, an op or a module is given. | Pass what graph(...) or program(...) returned.',
  'load.layout':
    'A weight cannot be converted to a layout. | A plan needs a layout of another rank, or one that is not declared. | Use another plan, or declare the layout and pass it in the option.',
  'load.layouts':
    'The option layouts contains something that is not a layout. | A name is given instead of a declaration. | Pass what layout(...) returned.',
  'load.option': 'load has no such option. | The option is misspelt and would be ignored. | Write one that the hint lists.',
  'load.plan':
    'The plan given to load does not belong to the graph. | A misspelt name, or a plan of another graph. | Choose one that the message lists.',
  'load.rank':
    'A weight has another number of dimensions than the graph declares. | A leading or trailing dimension of 1 is missing or too many. | Give the data with the shape that the message names.',
  'load.scales':
    'A scale that a plan needs is missing or not a scale. | The plan quantises values that were not calibrated. | Pass a positive number for each scale that the message names.',
  'load.shape':
    'The shape of a weight is not a list of sizes. | An extent is missing, negative or a fraction. | Give integers from 0.',
  'load.stale':
    'The plan was applied to another state of the graph. | The graph was edited after heddle gen. | Run heddle gen again.',
  'load.states':
    'The declared states do not match the program. | A state has no input or output of its name, or no initial value. | Name an input and an output of the graph, and give the initial value.',
  'load.tensor':
    'The value given as a weight is not a tensor. | An array or a number is given instead of a tensor. | Make it with tensor(dtype, shape, data).',
  'load.value':
    'Kernels cannot compute with an element of a weight. | It is an integer beyond int32. | Keep integers between -2^31 and 2^31 - 1.',
  'load.weight':
    'A weight is missing or does not fit. | Its name, shape or storage type differs from the declaration of the graph. | Give every weight of the graph with its declared shape.',
  'load.weights':
    'The option weights is not a record of tensors. | A list, or a single tensor. | Write { weights: { name: tensor } }.',
  'manifest.invalid':
    'The manifest of generated kernels is not as expected. | It was edited, merged by hand, or written by another version. | Run heddle gen again.',
  'manifest.missing':
    'The manifest of generated kernels cannot be read. | Nothing was generated yet, or the folder was removed. | Run heddle gen.',
  'model.closed':
    'A model is used after it was closed. | close() was called, or the scope that closes it ended. | Load it again.',
  'run.argument':
    'A row function in a body has no length or no elements. | An argument is left out, or is an undefined row. | Write sum(n, (c) => x(m, c)).',
  'run.data':
    'The data of a tensor given to a run does not match its type or shape. | Another kind of array, or another number of elements. | Make it with tensor(dtype, shape, values), which converts numbers.',
  'run.dim': 'A dimension of a run has no size. | No input tensor has it. | Pass it in dims.',
  'run.dims':
    'A dimension of a run has no size, or two. | Inputs determine only its product with another, or a tensor contradicts it. | Give dimensions that no input determines when loading the model.',
  'run.dtype':
    'A tensor of a run has another storage type than the graph declares. | Data of another type was loaded. | Convert with tensor(dtype, shape, toNumbers(t)).',
  'run.extent':
    'A dimension of a run has a size that its kernels are not compiled for. | It differs from a fixed size. | Use a size that the message names, or pad to it.',
  'run.input':
    'An input of a run is missing, unknown, or not given in an object. | A misspelt key, or no text and no cases on the command line. | Give every input by name, or --text or --cases.',
  'run.layout':
    'A device tensor of a run has another layout. | It is the output of something that stores another layout. | Read it back, and pass the host tensor.',
  'run.lengths':
    'Lengths of sequences do not fit their tensors. | A length exceeds the sequence, or the sequences do not fit the packed rows. | Give lengths from 0 to the extent of the sequence.',
  'run.output':
    'A body run by Node returns no such output. | The object that it returns lacks the key. | Return every declared output.',
  'run.rank':
    'A tensor of a run has another number of dimensions than is declared. | A leading or trailing dimension of 1 is missing or too many. | Give the data with the shape that the message names.',
  'run.shape':
    'A tensor of a run has a shape that does not fit. | Its data has another number of elements, or a dimension differs from another tensor. | Correct the shape as the message says.',
  'run.state':
    'A state is given a tensor of another shape or type. | The tensor was made for other sizes. | Give one with the shape and type of the state.',
  'run.tensor':
    'The value given as an input of a run is not a tensor. | An array or a number is given instead of a tensor. | Make it with tensor(dtype, shape, data).',
  'states.memory':
    'States of a program do not fit into the memory of the device. | Caches for this batch, number of beams and length take more than is free. | Use a smaller batch, fewer beams or fewer steps.',
  'states.name': 'A program has no state of that name. | It is misspelt. | Write one that the hint lists.',
  'states.values':
    'Values given for a state have another size. | They belong to another batch or length. | Give as many bytes as the message says.',
  'tensor.config':
    'The declaration of a tensor or state has an invalid argument. | An argument was left out or misspelt in JavaScript. | Give a storage type and dimensions as strings.',
  'tensor.data':
    'The values of a tensor are not an array of numbers that it can store. | Nested arrays, strings, or a BigInt64Array for another type. | Give one flat array of numbers.',
  'tensor.device': 'A tensor is on another device than the call. | Two devices are open. | Read it there, and upload it here.',
  'tensor.dtype':
    'The storage type of a tensor does not exist. | Names of other tools, such as float32. | Write one of the storage types that the message lists.',
  'tensor.freed':
    'A device tensor is used after it was freed. | free() was called, or its device was closed. | Keep it until its last use, or upload it again.',
  'tensor.layout':
    'A layout does not fit the shape of a tensor. | The layout has another number of axes. | Use a layout of the same rank.',
  'tensor.option': 'A tensor has no such option. | The option is misspelt and would be ignored. | Write one that the hint lists.',
  'tensor.shape':
    'The shape of a tensor is not a list of sizes, or does not match its data. | Its product is not the number of values. | Give integers from 0 whose product is the number of values.',
  'tensor.tensor':
    'The given value is not a tensor. | An array or a number is given instead of a tensor. | Make it with tensor(dtype, shape, data).',
  'tensor.value':
    'A value cannot be stored in the type of the tensor. | It is a fraction or beyond the range of an integer type. | Round and clamp first, or use a float type.',
  'verify.fact':
    'A kernel reads integers, and nothing states their range. | Test data cannot be drawn without the range. | State it on the op: facts: { ids: { index: "n" } }.',
  'verify.oracle':
    'The expected results of a kernel are unknown. | Its op is not among the specs, and its IR is not available. | Check it in the project that declares the op.',
})
