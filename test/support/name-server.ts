import { createSocket } from "node:dgram";
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { addCleanup } from "./cleanups.ts";

/**
 * Starts a name server that answers every question for an address with those that `list` returns at that moment for the name, of
 * the family that is asked for, as Docker's answers with the replicas of a service. A question for which `list` returns undefined gets
 * no answer. Returns its address.
 */
export async function startNameServer(
  list: (name: string, family: 4 | 6) => readonly string[] | undefined,
): Promise<string> {
  const socket = createSocket("udp4");
  socket.on("message", (question, { port, address }) => {
    const endOfName = question.indexOf(0, 12) + 1;
    const family = families.get(question.readUInt16BE(endOfName));
    const addresses = family === undefined ? [] : list(readName(question), family);
    if (addresses === undefined) return;
    const those = addresses.filter((one) => isIP(one) === family);
    socket.send(answer(question, { endOfName, addresses: those }), port, address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  addCleanup(() => socket.close());
  return `127.0.0.1:${socket.address().port}`;
}

/** The types of questions for addresses: A and AAAA. */
const families = new Map([
  [1, 4],
  [28, 6],
] as const) as ReadonlyMap<number, 4 | 6>;

/** Returns the name of the first question. */
function readName(message: Buffer): string {
  const labels: string[] = [];
  for (let at = 12; message.readUInt8(at) > 0; at += message.readUInt8(at) + 1)
    labels.push(message.toString("latin1", at + 1, at + 1 + message.readUInt8(at)));
  return labels.join(".");
}

/** Returns the response to a question (RFC 1035). */
function answer(
  message: Buffer,
  { endOfName, addresses }: { endOfName: number; addresses: readonly string[] },
): Buffer {
  const question = message.subarray(12, endOfName + 4);
  const header = Buffer.alloc(12);
  message.copy(header, 0, 0, 2);
  // A response, without errors, to one question.
  header.writeUInt16BE(0x81_80, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(addresses.length, 6);
  const records = addresses.map((address) => {
    const bytes = ipaddr.parse(address).toByteArray();
    // The name and the type of the question, class IN, valid for 0 s, and the length of the address.
    const prefix = Buffer.from("c00c0000000100000000", "hex");
    message.copy(prefix, 2, endOfName, endOfName + 2);
    return Buffer.from([...prefix, 0, bytes.length, ...bytes]);
  });
  return Buffer.concat([header, question, ...records]);
}
