// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// The part of Permit2's SignatureTransfer that we use (github.com/Uniswap/permit2).
interface IPermit2 {
    struct TokenPermissions {
        address token;
        uint256 amount;
    }

    struct PermitTransferFrom {
        TokenPermissions permitted;
        uint256 nonce;
        uint256 deadline;
    }

    struct SignatureTransferDetails {
        address to;
        uint256 requestedAmount;
    }

    function permitTransferFrom(
        PermitTransferFrom memory permit,
        SignatureTransferDetails calldata details,
        address owner,
        bytes calldata signature
    ) external;
}

interface IToken {
    function balanceOf(address account) external view returns (uint256);

    function permit(address owner, address spender, uint256 value, uint256 deadline, uint8 v, bytes32 r, bytes32 s)
        external;
}

/// Moves a payer's tokens to one treasury, and nowhere else, with the payer's Permit2 signature.
///
/// Payers sign for this contract as the spender, so no other contract can use the signature. It has no owner, holds no
/// tokens and cannot be upgraded, so a caller can only do what the payer has signed. The Permit2 nonce identifies the
/// payment: Permit2 accepts each nonce of a payer once.
contract Collector {
    IPermit2 public immutable PERMIT2;
    address public immutable TREASURY;

    event Collected(address indexed token, address indexed payer, uint256 indexed nonce, uint256 amount);

    /// The treasury did not receive exactly the signed amount: the token takes a fee, or it was re-entered.
    error WrongAmount(uint256 received, uint256 signed);

    constructor(IPermit2 permit2, address treasury) {
        PERMIT2 = permit2;
        TREASURY = treasury;
    }

    /// Collects `amount` of `token`, the full permitted amount, from `payer`.
    function collect(
        address token,
        address payer,
        uint256 amount,
        uint256 nonce,
        uint256 deadline,
        bytes calldata signature
    ) public {
        uint256 before = IToken(token).balanceOf(TREASURY);
        PERMIT2.permitTransferFrom(
            IPermit2.PermitTransferFrom(IPermit2.TokenPermissions(token, amount), nonce, deadline),
            IPermit2.SignatureTransferDetails(TREASURY, amount),
            payer,
            signature
        );
        uint256 received = IToken(token).balanceOf(TREASURY) - before;
        if (received != amount) revert WrongAmount(received, amount);
        emit Collected(token, payer, nonce, amount);
    }

    /// Like `collect`, for a payer who has not approved Permit2 yet but has signed an EIP-2612 permit for it.
    /// A failing permit is ignored: another account may have submitted it already, and then the allowance exists.
    function collectWithPermit(
        address token,
        address payer,
        uint256 amount,
        uint256 nonce,
        uint256 deadline,
        bytes calldata signature,
        uint256 allowance,
        uint256 permitDeadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        try IToken(token).permit(payer, address(PERMIT2), allowance, permitDeadline, v, r, s) {} catch {}
        collect(token, payer, amount, nonce, deadline, signature);
    }
}
