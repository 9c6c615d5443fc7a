// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// An EIP-3009 token. The standard specifies the logs of a transfer but not their order.
abstract contract AuthorizedToken {
    string public constant name = "Authorized Token";
    string public constant version = "1";
    uint8 public constant decimals = 6;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(bytes32 => bool)) public authorizationState;
    bytes32 private constant TYPEHASH = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);
    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);

    function mint(address to, uint256 value) external {
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function transfer(address to, uint256 value) external returns (bool) {
        move(msg.sender, to, value);
        return true;
    }

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256(bytes(name)),
                keccak256(bytes(version)),
                block.chainid,
                address(this)
            )
        );
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        require(block.timestamp > validAfter && block.timestamp < validBefore, "not valid now");
        require(!authorizationState[from][nonce], "used");
        bytes32 struct_ = keccak256(abi.encode(TYPEHASH, from, to, value, validAfter, validBefore, nonce));
        address signer = ecrecover(keccak256(abi.encodePacked("\x19\x01", DOMAIN_SEPARATOR(), struct_)), v, r, s);
        require(signer != address(0) && signer == from, "not signed by the payer");
        authorizationState[from][nonce] = true;
        settle(from, to, value, nonce);
    }

    function settle(address from, address to, uint256 value, bytes32 nonce) internal virtual;

    function move(address from, address to, uint256 value) internal {
        balanceOf[from] -= value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }
}

/// Emits AuthorizationUsed after the transfer.
contract AfterToken is AuthorizedToken {
    function settle(address from, address to, uint256 value, bytes32 nonce) internal override {
        move(from, to, value);
        emit AuthorizationUsed(from, nonce);
    }
}

/// Emits another log between AuthorizationUsed and the transfer.
contract BetweenToken is AuthorizedToken {
    function settle(address from, address to, uint256 value, bytes32 nonce) internal override {
        emit AuthorizationUsed(from, nonce);
        emit Approval(from, address(this), 0);
        move(from, to, value);
    }
}

/// Keeps one unit of each transfer for its issuer, with a Transfer log of its own that comes first.
contract TitheToken is AuthorizedToken {
    function settle(address from, address to, uint256 value, bytes32 nonce) internal override {
        emit AuthorizationUsed(from, nonce);
        move(from, address(this), 1);
        move(from, to, value);
    }
}
