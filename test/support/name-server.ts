import { createSocket } from "node:dgram";
import { addCleanup } from "./cleanups.ts";

/**
 * Starts a name server that answers every question for an IPv4 address with the addresses that `list` returns at that moment, as
 * Docker's answers with the replicas of a service. Returns its address.
 */
export async function startNameServer(list: () => readonly string[]): Promise<string> {
  const socket = createSocket("udp4");
  socket.on("message", (question, { port, address }) => socket.send(answer(question, list()), port, address));
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  addCleanup(() => socket.close());
  return `127.0.0.1:${socket.address().port}`;
}

/** Returns the response to a question (RFC 1035). A question for another type than A has no answers. */
function answer(message: Buffer, addresses: readonly string[]): Buffer {
  const endOfName = message.indexOf(0, 12) + 1;
  const question = message.subarray(12, endOfName + 4);
  const answers = message.readUInt16BE(endOfName) === 1 ? addresses : [];
  const header = Buffer.alloc(12);
  message.copy(header, 0, 0, 2);
  // A response, without errors, to one question.
  header.writeUInt16BE(0x81_80, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(answers.length, 6);
  // The name of the question, type A, class IN, valid for 0 s, 4 bytes.
  const prefix = Buffer.from("c00c0001000100000000", "hex");
  const records = answers.map((address) => Buffer.from([...prefix, 0, 4, ...address.split(".").map(Number)]));
  return Buffer.concat([header, question, ...records]);
}
