import { GetPublicKeyCommand, KMSClient, SignCommand } from "@aws-sdk/client-kms";
import { z } from "zod";
import type { RemoteKey, SigningScheme } from "./remote-key.ts";

/**
 * A key in AWS KMS (key usage SIGN_VERIFY; key spec ECC_SECG_P256K1 or ECC_NIST_EDWARDS25519). Credentials come from the AWS
 * provider chain (environment, role, profile).
 */
export type AwsKmsKey = { keyId: string; region: string; endpoint?: string | undefined };

/** Timeout of one attempt in milliseconds. The client makes two; together they are shorter than a lane's lease. */
const TIMEOUT_MS = 2_000;

/**
 * How each scheme is called. ED25519_SHA_512 is pure Ed25519, which requires the message itself (RAW, at most 4,096 bytes):
 * https://docs.aws.amazon.com/kms/latest/developerguide/symm-asymm-choose-key-spec.html and
 * https://docs.aws.amazon.com/kms/latest/APIReference/API_Sign.html
 */
const callOfScheme = {
  secp256k1: { MessageType: "DIGEST", SigningAlgorithm: "ECDSA_SHA_256" },
  ed25519: { MessageType: "RAW", SigningAlgorithm: "ED25519_SHA_512" },
} as const satisfies Record<SigningScheme, unknown>;

/** Opens the key without sending a request. */
export function openAwsKmsKey({ keyId: KeyId, region, endpoint }: AwsKmsKey, scheme: SigningScheme): RemoteKey {
  const client = new KMSClient({
    region,
    ...(endpoint ? { endpoint } : {}),
    maxAttempts: 2,
    // Without throwOnRequestTimeout the client only logs a warning.
    requestHandler: { requestTimeout: TIMEOUT_MS, connectionTimeout: TIMEOUT_MS, throwOnRequestTimeout: true },
  });
  return {
    async readPublicKey() {
      const { PublicKey } = await client.send(new GetPublicKeyCommand({ KeyId }));
      return Buffer.from(PublicKey ?? []);
    },
    async sign(Message) {
      const { Signature } = await client.send(new SignCommand({ KeyId, Message, ...callOfScheme[scheme] }));
      return Signature ?? Buffer.alloc(0);
    },
    isTransient,
  };
}

const awsError = z.object({
  name: z.string().optional(),
  $metadata: z.object({ httpStatusCode: z.number().optional() }).optional(),
});

/** AWS reports throttling as 400 with an error name. Any other 4xx and missing credentials need the operator. */
function isTransient(error: unknown): boolean {
  const { name = "", $metadata } = awsError.safeParse(error).data ?? {};
  if (name === "CredentialsProviderError") return false;
  const status = $metadata?.httpStatusCode ?? 0;
  return (
    /throttl|limitexceeded|timeout/i.test(name) || status === 408 || status === 429 || status < 400 || status >= 500
  );
}
