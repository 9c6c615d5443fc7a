// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

interface IToken {
    function balanceOf(address account) external view returns (uint256);
}

/// Pays out one treasury's tokens, each payout once, and only as the treasury has signed it.
///
/// The counterpart of the Collector, for tokens without signed transfers (EIP-3009). The treasury approves it as spender,
/// and any account may submit a signed payout. It has no owner, holds no tokens and cannot be upgraded.
contract Disburser {
    address public immutable TREASURY;

    /// Nonces of the payouts that were made.
    mapping(bytes32 => bool) public used;

    event Disbursed(address indexed token, address indexed receiver, bytes32 indexed nonce, uint256 amount);

    /// The payout was made before.
    error NonceUsed(bytes32 nonce);
    /// The treasury has not signed this payout, or the signature is malleable (high s).
    error NotSigned();
    /// The token returned false.
    error TransferRefused();
    /// The receiver did not receive exactly the signed amount: the token takes a fee, or it was re-entered.
    error WrongAmount(uint256 received, uint256 signed);

    bytes32 private constant DOMAIN =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant DISBURSEMENT =
        keccak256("Disbursement(address token,address receiver,uint256 amount,bytes32 nonce)");
    /// secp256k1n / 2 (EIP-2). A higher s would make signatures malleable.
    uint256 private constant HALF_N = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0;

    constructor(address treasury) {
        TREASURY = treasury;
    }

    /// Moves `amount` of `token` from the treasury to `receiver`, if the treasury has signed it and `nonce` is unused.
    function disburse(
        address token,
        address receiver,
        uint256 amount,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        if (used[nonce]) revert NonceUsed(nonce);
        // Set before any external call, so that a token that calls back finds the nonce used.
        used[nonce] = true;
        bytes32 content = keccak256(abi.encode(DISBURSEMENT, token, receiver, amount, nonce));
        address signer = ecrecover(keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), content)), v, r, s);
        if (signer == address(0) || signer != TREASURY || uint256(s) > HALF_N) revert NotSigned();
        uint256 before = IToken(token).balanceOf(receiver);
        transfer(token, receiver, amount);
        uint256 received = IToken(token).balanceOf(receiver) - before;
        if (received != amount) revert WrongAmount(received, amount);
        emit Disbursed(token, receiver, nonce, amount);
    }

    /// The EIP-712 domain has the chain id and this address, so signatures are invalid elsewhere, also on a chain fork.
    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        bytes32 name = keccak256("Disburser");
        bytes32 version = keccak256("1");
        return keccak256(abi.encode(DOMAIN, name, version, block.chainid, address(this)));
    }

    /// Tokens return true, false or nothing (USDT on Ethereum). Reverts of the token are passed on.
    function transfer(address token, address receiver, uint256 amount) private {
        (bool done, bytes memory answer) = token.call(
            abi.encodeWithSignature("transferFrom(address,address,uint256)", TREASURY, receiver, amount)
        );
        if (!done) {
            assembly ("memory-safe") {
                revert(add(answer, 32), mload(answer))
            }
        }
        if (answer.length > 0 && (answer.length < 32 || abi.decode(answer, (uint256)) != 1)) revert TransferRefused();
    }
}
